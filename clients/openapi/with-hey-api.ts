/** Calls of a relay by the client of @hey-api/openapi-ts. Prints their results as JSON. */
import { client } from './hey-api/relay/client.gen.ts'
import { getEvents, getMessages, getMessagesId, postOperations } from './hey-api/relay/index.ts'

const [, , baseUrl = '', token = '', recipient = ''] = process.argv
client.setConfig({ baseUrl, auth: token })

const messages = await getMessages({ query: { recipient, limit: 10 } })
const rows = messages.data?.messages ?? []
const held = await postOperations({ body: { operation: 'hold', selection: { kind: 'ids', ids: rows.map((row) => row.queue_id) } } })
const events = await getEvents({ query: { types: 'message.*', limit: 2 } })
const missing = await getMessagesId({ path: { id: 'none' } })
const wrong = await getMessages({ query: { limit: 0 } })

process.stdout.write(
  JSON.stringify({
    recipients: rows.flatMap((row) => row.recipients.map(({ address }) => address)),
    held: held.data !== undefined && 'changed' in held.data ? held.data.changed : null,
    events: events.data?.events.map(({ type }) => type),
    missing: missing.error?.title,
    wrong: wrong.error?.errors?.map(({ pointer }) => pointer),
  }),
)
