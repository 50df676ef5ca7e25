/** SQL for the arithmetic of ids: the recipients of a message are one range of ids. */
import { CHUNKS_PER_CONTENT } from '../chunks.ts'
import { RECIPIENTS_PER_MESSAGE } from '../../mail/message.ts'

/**
 * Right side of an SQL condition (`between … and …`) for the recipient ids of the messages from `first` to `last`, two SQL
 * expressions; in PostgreSQL of type bigint.
 */
export const recipientRange = (first: string, last = first): string =>
  `between ${first} * ${RECIPIENTS_PER_MESSAGE} and ${last} * ${RECIPIENTS_PER_MESSAGE} + ${RECIPIENTS_PER_MESSAGE - 1}`

/** SQL expression for the message id of a recipient. */
export const messageIdOf = (recipient: string): string => `${recipient} / ${RECIPIENTS_PER_MESSAGE}`

/** Right side of an SQL condition (`between … and …`) for the chunk ids of a content. */
export const chunkRange = (content: string): string =>
  `between ${content} * ${CHUNKS_PER_CONTENT} and ${content} * ${CHUNKS_PER_CONTENT} + ${CHUNKS_PER_CONTENT - 1}`
