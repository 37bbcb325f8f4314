// What the traffic programs in JavaScript send: one order after the other, as JSON.

export const ROUNDS = 40
export const BATCH = 32
export const PARTITIONS = 3

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
