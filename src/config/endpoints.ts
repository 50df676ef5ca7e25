/** Where to listen, as operators write it: `127.0.0.1:2525`, `[::1]:25`, `*:25` for all addresses, or a port alone. */
import type { Endpoint } from '../delivery/net.ts'

/** Throws a sentence for the operator; `parameter` is where it was given. */
export function parseListen(text: string, parameter: string): Endpoint {
  const [, bracketed, plain, digits] = /^(?:(?:\[([^\]]+)\]|([^:[\]]*)):)?(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits ?? Number.NaN)
  if (!(port <= 65_535)) throw new Error(`${parameter}: expected an address and a port such as 127.0.0.1:2525 or [::1]:25, got ${text}`)
  const host = bracketed ?? plain ?? '*'
  return { address: host === '*' || host === '' ? '::' : host, port }
}
