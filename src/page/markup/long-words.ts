/** Long words, such as addresses, with the places at which a narrow column may break them. */
import { html, type Html } from '../../presentation/html.ts'
import { destinationLink } from './links.ts'
import type { View } from './view.ts'

/** Characters up to which a word stays whole, and so does a part of a longer one. */
const WHOLE = 16
/** An IPv4 address in brackets, or a sign with the letters before it, as far as they stay whole. An `@` begins a part, so that a domain stays whole where it can. */
const PARTS = /\[[\d.]{7,15}\]|@?[^\s@./_+=?&:;,-]{1,15}[./_+=?&:;,-]?|./gsu

/** A place at which a word may be broken. A browser would read it as a blank in the name of a link or a heading. */
const PLACE = html`<wbr aria-hidden="true" />`

/** Parts joined as long as the whole has at most this many characters. */
function joinedParts(word: string): readonly string[] {
  const parts: string[] = []
  for (const part of word.match(PARTS) ?? []) {
    const last = parts.at(-1)
    if (last === undefined || part.startsWith('@') || last.length + part.length > WHOLE) parts.push(part)
    else parts[parts.length - 1] = last + part
  }
  return parts
}

/** A text whose words of more than 16 characters can be broken behind a sign, and before the domain of an address. */
export const breakable = (text: string): Html =>
  html`${text.split(/(\s+)/).map((word) => (word.length <= WHOLE ? word : joinedParts(word).map((part, i) => (i === 0 ? part : [PLACE, part]))))}`

/** An address of mail. */
export const addressPart = (address: string): Html => html`<span class="address">${breakable(address)}</span>`

/** Characters up to which a destination stays on one line of a wide screen: `smtp:[192.0.2.100]:2525` has 23. */
const SHORT_DESTINATION = 28

/** A destination that leads to its screen. Its places for a break are not displayed where it stays whole, and tools read such an element as a blank. */
export function destinationPart(view: Pick<View, 'root'>, name: string): Html {
  const whole = name.length <= SHORT_DESTINATION ? html` class="short" aria-label="${name}"` : null
  return html`<a href="${destinationLink(view, name)}" ${whole}>${breakable(name)}</a>`
}
