/** Mail transaction of a remote server, and the syntax of its commands (RFC 5321 §4.1.1). Pure. */
import { withLowerDomain } from '../../mail/address.ts'

export interface Transaction {
  readonly sender: string
  readonly parameters: string
  /** Size in bytes as stated with SIZE (RFC 1870); undefined without SIZE. */
  readonly size: number | undefined
  readonly recipients: readonly { readonly address: string; readonly parameters: string }[]
}

interface PathWithParameters {
  readonly address: string
  readonly parameters: string
}

function readPath(command: string, pattern: RegExp): PathWithParameters | undefined {
  const match = pattern.exec(command)
  return match === null ? undefined : { address: withLowerDomain(match[1] ?? ''), parameters: (match[2] ?? '').trim() }
}

/** Parses a command such as `MAIL FROM:<app@us.example> SIZE=120`. Undefined for a syntax error. */
export function readMail(command: string): Transaction | undefined {
  const path = readPath(command, /^MAIL FROM: ?<([^>]*)>(.*)$/i)
  if (path === undefined) return undefined
  const size = /(?:^|\s)SIZE=(\d+)/i.exec(path.parameters)?.[1]
  return { sender: path.address, parameters: path.parameters, size: size === undefined ? undefined : Number(size), recipients: [] }
}

/** Parses a command such as `RCPT TO:<ann@them.example> NOTIFY=NEVER`. Undefined for a syntax error. */
export const readRcpt = (command: string): PathWithParameters | undefined => readPath(command, /^RCPT TO: ?<([^>]+)>(.*)$/i)

/** Splits a command into its upper-case verb and its argument. */
export function readCommand(line: string): { readonly verb: string; readonly argument: string } {
  const blank = line.indexOf(' ')
  return blank < 0
    ? { verb: line.toUpperCase(), argument: '' }
    : { verb: line.slice(0, blank).toUpperCase(), argument: line.slice(blank + 1).trim() }
}
