/**
 * Converts the input of `sendmail` to a message: normalizes line ends, completes addresses, and extracts the recipients of the
 * header. Pure.
 */
import { addressesIn } from '../../mail/address-list.ts'
import type { UnfoldedField } from '../../mail/headers.ts'
import { parseAddress } from '../../mail/address-path.ts'

/**
 * Removes mbox `From ` lines at the beginning and ends every line with CRLF. A stray CR becomes a space (Postfix
 * cleanup_replace_stray_cr_lf). With `dotEnds`, the text ends before a line with a single dot.
 */
export function normalizeInput(text: string, dotEnds: boolean): string {
  let lines = text.split('\n').map((line) => line.replace(/\r$/, '').replaceAll('\r', ' '))
  if (lines.at(-1) === '') lines.pop()
  const dot = dotEnds ? lines.indexOf('.') : -1
  if (dot >= 0) lines = lines.slice(0, dot)
  const first = lines.findIndex((line) => !/^>?From /.test(line))
  return (first < 0 ? [] : lines.slice(first)).map((line) => `${line}\r\n`).join('')
}

/** Address lists of To, Cc and Bcc. When a Resent-To, Resent-Cc or Resent-Bcc field exists, only these are used (Postfix sendmail -t). */
export function recipientFields(fields: readonly UnfoldedField[]): readonly string[] {
  const named = (...names: readonly string[]) => fields.filter(({ name }) => names.includes(name)).map(({ value }) => value)
  const resent = named('resent-to', 'resent-cc', 'resent-bcc')
  return resent.length > 0 ? resent : named('to', 'cc', 'bcc')
}

/** Returns the addresses of the lists, completed and without repetitions, and the texts that are not addresses. */
export function readAddresses(
  lists: readonly string[],
  origin: string,
): { readonly addresses: readonly string[]; readonly malformed: readonly string[] } {
  const read = lists.flatMap(addressesIn).map(({ text, address }) => ({
    text,
    address: address === null ? undefined : parseAddress(address, origin),
  }))
  return {
    addresses: distinct(read.flatMap(({ address }) => address ?? [])),
    malformed: read.filter(({ address }) => address === undefined).map(({ text }) => text),
  }
}

/** Removes addresses that differ from an earlier one in case only, or not at all (Postfix cleanup_out_recipient). */
const distinct = (addresses: readonly string[]): readonly string[] =>
  [...new Map(addresses.toReversed().map((address) => [address.toLowerCase(), address])).values()].toReversed()
