/** Texts of the addresses of a running daemon. */
import type { Described } from './shell.ts'

const at = (address: string, port: number): string => (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`)

export const listenText = ({ listeners }: Described): string =>
  `deferd listens on ${listeners.map(({ address, port }) => at(address, port)).join(', ')}`

/** Queue directory, metrics and page. */
export const placeText = ({ queueDirectory, http, page }: Described): string =>
  `queue directory: ${queueDirectory}${http === null ? '' : `; metrics: http://${http}/metrics`}${page === null ? '' : `; page: ${page}`}`
