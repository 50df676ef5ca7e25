/**
 * Terms by which a message is found in the index of both SQL engines: its Message-ID, its addresses, their domains, the words of its
 * subject. A term has no blank and no control character. Pure.
 */
import { domainOf } from '../../mail/address.ts'
import type { Message } from '../../mail/message.ts'

/** A term that a message must have; with `isPrefix`, one that begins with it. */
export interface SearchTerm {
  readonly text: string
  readonly isPrefix: boolean
}

/** The members of a message from which its terms are made. */
type SearchedMessage = Pick<Message, 'sender' | 'messageId' | 'subject'>

/** Maximum number of characters of a term, by which a longer text is found too. */
const LONGEST = 250
/** Maximum number of words of a subject. */
const MOST_WORDS = 100

/** Number of addresses in one entry of the index. A message with more recipients has several entries. */
export const ADDRESSES_PER_ENTRY = 1_000

const made = (kind: 'm' | 'a' | 'd' | 's', text: string): string =>
  `${kind}:${text.replaceAll(/[\p{Z}\p{C}]/gu, '_')}`.toLowerCase().slice(0, LONGEST).toWellFormed()

const term =
  (make: (text: string) => string) =>
  (text: string, isPrefix: boolean): SearchTerm => ({ text: make(text), isPrefix })

const messageIdTerm = (text: string): string => made('m', text.trim().replace(/^<|>$/g, ''))
const addressTerm = (text: string): string => made('a', text)
const domainTerm = (text: string): string => made('d', text)
const wordTerm = (word: string): string => made('s', word)

/** Words without their accents and case. */
export const wordsOf = (text: string): readonly string[] =>
  text
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .slice(0, MOST_WORDS)

export const termFor = {
  messageId: term(messageIdTerm),
  address: term(addressTerm),
  domain: term(domainTerm),
  word: term((word) => wordTerm(wordsOf(word)[0] ?? '')),
} as const

/** The terms of each entry of a message. */
export function entriesOf({ sender, messageId, subject }: SearchedMessage, addresses: readonly string[]): readonly (readonly string[])[] {
  const own = [
    ...(messageId === undefined ? [] : [messageIdTerm(messageId)]),
    ...(subject === undefined ? [] : wordsOf(subject).map(wordTerm)),
  ]
  const parts = Math.max(1, Math.ceil(addresses.length / ADDRESSES_PER_ENTRY))
  return Array.from({ length: parts }, (_, n) => {
    const some = [sender, ...addresses.slice(n * ADDRESSES_PER_ENTRY, (n + 1) * ADDRESSES_PER_ENTRY)].filter((one) => one !== '')
    return [...new Set([...own, ...some.flatMap((one) => [addressTerm(one), domainTerm(domainOf(one))])])]
  })
}

/** Whether one entry of a message has all terms, as the index decides. */
export const hasTerms = (entries: readonly (readonly string[])[], terms: readonly SearchTerm[]): boolean =>
  entries.some((entry) => terms.every(({ text, isPrefix }) => entry.some((one) => (isPrefix ? one.startsWith(text) : one === text))))
