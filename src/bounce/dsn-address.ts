/**
 * Formats addresses for a notice: for its header (RFC 5322) and for its status fields. Addresses outside ASCII have the forms of
 * RFC 6533 §3.
 */
import { isInternational } from '../mail/address.ts'
import { ascii, oneLine } from './text-folding.ts'

/** Maximum octets of an address. A longer address would not fit on one line of mail. */
const LONGEST_ADDRESS = 900

const DOT_ATOM = /^[^\s()<>[\]:;@\\,."]+(?:\.[^\s()<>[\]:;@\\,."]+)*$/
const QUOTED = /^"(?:[^"\\]|\\.)*"$/

/** Formats an address for a header field, quoted where RFC 5322 requires; `undisclosed-recipients:;` when it is too long. */
export function headerAddress(address: string): string {
  const line = oneLine(address, Infinity)
  const at = line.lastIndexOf('@')
  const local = at < 0 ? line : line.slice(0, at)
  const domain = at < 0 ? '' : line.slice(at)
  const written = DOT_ATOM.test(local) || QUOTED.test(local) ? line : `"${local.replace(/["\\]/g, '\\$&')}"${domain}`
  return new TextEncoder().encode(written).length <= LONGEST_ADDRESS ? written : 'undisclosed-recipients:;'
}

/** Encodes an address as `utf-8-addr-xtext`: every character outside printable ASCII, and `+ = \`, becomes `\x{…}`. */
const embed = (address: string): string =>
  address.replace(/[^!-~]|[+=\\]/gu, (char) => `\\x{${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(2, '0')}}`)

const clip = (text: string): string => oneLine(text, LONGEST_ADDRESS / 3)

/**
 * An address with its type: `rfc822; ann@example.net`, or a utf-8 form. `global` is true when the report itself may contain
 * UTF-8.
 */
export function typedAddress(address: string, global: boolean): string {
  if (!isInternational(address)) return `rfc822; ${clip(address)}`
  return `utf-8; ${global ? clip(address) : embed(clip(address))}`
}

/** Formats ORCPT as received: `type;address`. */
export function originalAddress(orcpt: string, global: boolean): string {
  const line = clip(orcpt)
  if (global || !isInternational(line)) return line
  const mark = line.indexOf(';')
  return mark < 0 ? ascii(line) : `utf-8;${embed(line.slice(mark + 1).trim())}`
}
