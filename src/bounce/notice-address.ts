/**
 * Addresses as they stand in a notice: in its header (RFC 5322) and in its status fields, where those outside ASCII
 * have forms of their own (RFC 6533 §3).
 */
import { isInternational } from '../mail/address.ts'
import { ascii, oneLine } from './fold.ts'

/** Longer ones could not stand on one line of mail. */
const LONGEST_ADDRESS = 900

const DOT_ATOM = /^[^\s()<>[\]:;@\\,."]+(?:\.[^\s()<>[\]:;@\\,."]+)*$/
const QUOTED = /^"(?:[^"\\]|\\.)*"$/

/** An address for a header field; quoted where RFC 5322 asks for it. Nobody is named when it cannot be written. */
export function headerAddress(address: string): string {
  const line = oneLine(address, Infinity)
  const at = line.lastIndexOf('@')
  const local = at < 0 ? line : line.slice(0, at)
  const domain = at < 0 ? '' : line.slice(at)
  const written = DOT_ATOM.test(local) || QUOTED.test(local) ? line : `"${local.replace(/["\\]/g, '\\$&')}"${domain}`
  return new TextEncoder().encode(written).length <= LONGEST_ADDRESS ? written : 'undisclosed-recipients:;'
}

/** `utf-8-addr-xtext`: everything outside printable ASCII, and `+ = \`, as `\x{…}`. */
const embed = (address: string): string =>
  address.replace(/[^!-~]|[+=\\]/gu, (char) => `\\x{${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(2, '0')}}`)

const clip = (text: string): string => oneLine(text, LONGEST_ADDRESS / 3)

/** `rfc822; ann@example.net`, or the utf-8 forms; `global` when the report itself may carry UTF-8. */
export function typedAddress(address: string, global: boolean): string {
  if (!isInternational(address)) return `rfc822; ${clip(address)}`
  return `utf-8; ${global ? clip(address) : embed(clip(address))}`
}

/** ORCPT as the sender gave it: `type;address`. */
export function originalAddress(orcpt: string, global: boolean): string {
  const line = clip(orcpt)
  if (global || !isInternational(line)) return line
  const mark = line.indexOf(';')
  return mark < 0 ? ascii(line) : `utf-8;${embed(line.slice(mark + 1).trim())}`
}
