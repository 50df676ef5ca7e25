/** Fields of a message that are kept beside it: the Message-Id, and Subject and From as people read them, decoded (RFC 2047), at most 200 characters. */
import { CONTROLS, maskControls } from '../smtp-reply.ts'
import { fieldsOf } from '../headers.ts'
import type { Message } from '../message.ts'
import { decodedField } from './encoded-text.ts'

/** Maximum number of characters that are kept of a field. */
const LONGEST = 200
/** Maximum number of characters that are decoded. An encoded word has at least a fourth of its length as text, mostly. */
const MOST_READ = 1_600

/** Maximum number of characters of a Message-Id that are kept, for the log and for threading: those of a line (RFC 5322 §2.1.1). */
const MESSAGE_ID_LIMIT = 998

/** A Message-Id as it is kept. */
export const keptMessageId = (value: string): string => maskControls(value).slice(0, MESSAGE_ID_LIMIT)

/** Values of the fields, unfolded; undefined for an absent one. */
interface GivenFields {
  readonly subject: string | undefined
  readonly from: string | undefined
}

export type ShownFields = Pick<Message, 'subject' | 'fromHeader'>

export const NOT_SHOWN: ShownFields = {}

/** `fromHeader` is empty for mail without the field: its presence tells that the texts are kept. */
export const shownFields = ({ subject, from }: GivenFields): ShownFields => ({
  subject: subject === undefined ? undefined : shownText(subject),
  fromHeader: shownText(from ?? ''),
})

/** The fields of a complete content, for mail that the relay composes. */
export function shownFieldsIn(content: Uint8Array): ShownFields {
  const first = new Map<string, string>()
  for (const { name, value } of fieldsOf(content)) if (!first.has(name)) first.set(name, value)
  return shownFields({ subject: first.get('subject'), from: first.get('from') })
}

const PLAIN = /^[ -~]*$/

function shownText(value: string): string {
  const given = value.slice(0, MOST_READ)
  const text = given.includes('=?') ? decodedField(given) : given
  if (PLAIN.test(text)) return text.slice(0, LONGEST).trim()
  const cleaned = text.replaceAll(/\s+/g, ' ').replaceAll(CONTROLS, '').trim()
  return cleaned.length <= LONGEST ? cleaned.toWellFormed() : Array.from(cleaned).slice(0, LONGEST).join('').toWellFormed()
}
