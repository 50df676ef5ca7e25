/** The columns of a message that are written once, as arrays for a statement that inserts many messages. */
import type { Message } from '../../../mail/message.ts'
import { booleans, int8s, texts } from '../session/arrays.ts'

export const WRITTEN_ONCE = `id, created_at, arrived_at, size, content_id, smtputf8, sender, prepended_headers, ret, envid, body_type, message_id,
  client, sasl_username`

/** Placeholders of the parameters that `messageArrays` returns. The parameters of the statement begin with them. */
export const WRITTEN_ONCE_ARRAYS = `$1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[], $7::text[], $8::text[],
  $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[]`

export const messageArrays = (messages: readonly Message[]) => [
  int8s(messages.map(({ id }) => id)),
  int8s(messages.map(({ createdAt }) => createdAt)),
  int8s(messages.map(({ arrivedAt }) => arrivedAt)),
  int8s(messages.map(({ size }) => size)),
  int8s(messages.map(({ contentId }) => contentId)),
  booleans(messages.map(({ smtputf8 }) => smtputf8)),
  texts(messages.map(({ sender }) => sender)),
  texts(messages.map(({ prependedHeaders }) => prependedHeaders ?? null)),
  texts(messages.map(({ ret }) => ret ?? null)),
  texts(messages.map(({ envid }) => envid ?? null)),
  texts(messages.map(({ bodyType }) => bodyType ?? null)),
  texts(messages.map(({ messageId }) => messageId ?? null)),
  texts(messages.map(({ client }) => client ?? null)),
  texts(messages.map(({ saslUsername }) => saslUsername ?? null)),
]
