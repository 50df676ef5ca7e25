/** Extensions in replies to EHLO that a recording can follow. Pure. */
import { REPLY } from './observation.ts'

/** Extensions whose commands a scripted server does not have. */
const REMOVED: ReadonlySet<string> = new Set(['CHUNKING', 'BINARYMIME'])

function isKept(extension: string, hasTls: boolean): boolean {
  const name = extension.split(' ', 1)[0]?.toUpperCase() ?? ''
  return !REMOVED.has(name) && (name !== 'STARTTLS' || hasTls)
}

const textOf = (line: string): string => line.slice('250-'.length).trim()

/** Extensions that a reply to EHLO lists, without those that are removed. */
export const keptExtensions = (reply: string, hasTls: boolean): readonly string[] =>
  reply
    .trimEnd()
    .split('\r\n')
    .slice(1)
    .map(textOf)
    .filter((one) => isKept(one, hasTls))

/** Bytes that begin with a reply to EHLO, without the extensions that are removed. */
export function withoutRemoved(bytes: Buffer, hasTls: boolean): Buffer {
  const text = bytes.toString('latin1')
  const reply = REPLY.exec(text)?.[0] ?? ''
  const lines = reply.split('\r\n').slice(0, -1)
  const left = lines.filter((line, index) => index === 0 || isKept(textOf(line), hasTls))
  if (left.length === lines.length) return bytes
  const shown = left.map((line, index) => `${line.slice(0, 3)}${index < left.length - 1 ? '-' : ' '}${line.slice(4)}\r\n`)
  return Buffer.from(`${shown.join('')}${text.slice(reply.length)}`, 'latin1')
}
