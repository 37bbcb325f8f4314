// What the traffic programs in JavaScript send, one order after the other, as JSON; and how they wait.

export const BATCH = 32
export const COUNT = 40 * BATCH
export const MORE = 2 * BATCH
export const PARTITIONS = 3
export const RETENTION = '3600000'
// Each third of them is aborted.
export const TRANSACTIONS = 6

const PATIENCE = 60_000

/** Ask again and again, as a broker learns a little later what a controller has decided. */
export async function until (isSo) {
  const end = Date.now() + PATIENCE
  while (!await isSo()) {
    if (Date.now() > end) {
      throw new Error(`not so after ${PATIENCE} ms: ${isSo}`)
    }
  }
}

/** The orders from one number to another. */
export function batch (client, start) {
  return Array.from({ length: BATCH }, (_, each) => order(client, start + each))
}

export function order (client, number) {
  const customer = `${client}-${String(number * 7 % 211).padStart(3, '0')}`
  const items = [{
    article: `A-${String(number * 7919 % 100000).padStart(5, '0')}`,
    count: number % 9 + 1,
    price: number * 37 % 400 + number % 100 / 100
  }]
  const note = `leave it with the neighbour at number ${number % 50}`
  return { key: customer, value: JSON.stringify({ order: number, customer, city: 'Porto', items, note }) }
}
