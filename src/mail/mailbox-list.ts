/**
 * Parses address lists as RFC 5322 §3.4 writes them, for programs: unlike `addressesIn`, which reads what people write to sendmail(1), a comma
 * that is missing is an error, and an address has a domain. Pure.
 */
import { addressesIn } from './address-list.ts'
import { endOfToken } from './address-tokens.ts'
import { parseAddress } from './address-path.ts'

/**
 * Returns the addresses of a list in SMTP form. An element that is not one address is returned as it is written, without blanks around it; so is
 * a list with a quoted string, comment, domain literal, bracket or group without its end. `parseMailbox` refuses these texts.
 */
export const mailboxesIn = (list: string): readonly string[] => elementsOf(list)?.map(mailboxIn) ?? [list.trim()]

/** The address of an element, without a name and comments; the element when it is not exactly one address. */
function mailboxIn(element: string): string {
  const [listed, ...others] = addressesIn(element)
  return others.length === 0 ? (listed?.address ?? element) : element
}

/**
 * Address of a Mailbox (RFC 5321 §4.1.2); undefined for other text. `postmaster`, which alone needs no domain (§4.1.1.3), gets `origin`.
 */
export function parseMailbox(text: string, origin: string): string | undefined {
  const address = parseAddress(text, /^postmaster$/i.test(text) ? origin : '')
  const local = address?.slice(0, address.lastIndexOf('@'))
  return local?.includes('@') === true && !text.includes('"') ? undefined : address
}

/** The elements of a list and of its groups. Undefined when something that was opened is not closed, and for a semicolon outside of a group. */
function elementsOf(list: string): readonly string[] | undefined {
  const elements: string[] = []
  let [start, isBracketed, isGroup] = [0, false, false]
  for (let at = 0; at < list.length;) {
    const char = list.charAt(at)
    const end = /\s/.test(char) ? at + 1 : endOfToken(list, at)
    if (end === null) return undefined
    if (char === '<' || char === '>') isBracketed = char === '<'
    else if (!isBracketed && ',:;'.includes(char)) {
      if (char === (isGroup ? ':' : ';')) return undefined
      if (char !== ':') elements.push(list.slice(start, at))
      isGroup = char === ':' || (isGroup && char === ',')
      start = end
    }
    at = end
  }
  if (isBracketed || isGroup) return undefined
  return [...elements, list.slice(start)].map((element) => element.trim()).filter((element) => element !== '')
}
