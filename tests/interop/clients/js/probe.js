// What the probes in JavaScript share: steps that are reported as JSON lines.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

export const TOPIC = '__cluster_metadata'
export const servers = process.argv.at(-1).split(',')

const given = process.env.KRAFTWIRE_PROBE_LOGIN

/** How to log in by SASL_SSL: the authority's certificate, mechanism, user, password. */
export const login = given && (({ ca, ...rest }) => ({ ca: readFileSync(ca), ...rest }))(JSON.parse(given))

/** Take the steps in order and report each; one that fails does not stop the others. */
export async function run (client, steps) {
  say({ version: createRequire(import.meta.url)('./package.json').dependencies[client] })
  for (const [step, take] of Object.entries(steps)) {
    try {
      say({ step, ok: true, detail: await take() })
    } catch (error) {
      say({ step, ok: false, detail: `${error.name}: ${error.message}` })
    }
  }
}

/** Fail with what was found unless something holds. */
export function expect (holds, found) {
  if (!holds) {
    const text = (_, value) => value instanceof Map
      ? [...value]
      : typeof value === 'bigint' ? String(value) : value
    throw new Error(`found ${JSON.stringify(found, text)}`)
  }
}

function say (line) {
  console.log(JSON.stringify(line))
}
