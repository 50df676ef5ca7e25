/** Calls of a relay by the types of openapi-typescript. Prints their results as JSON. */
import createClient from 'openapi-fetch'
import type { paths } from './openapi-typescript/relay.ts'

const [, , baseUrl = '', token = '', recipient = ''] = process.argv
const client = createClient<paths, 'application/json' | 'application/problem+json'>({
  baseUrl,
  headers: { authorization: `Bearer ${token}` },
})

const messages = await client.GET('/api/v1/messages', { params: { query: { recipient, limit: 10 } } })
const rows = messages.data?.messages ?? []
const held = await client.POST('/api/v1/operations', {
  body: { operation: 'hold', selection: { kind: 'ids', ids: rows.map((row) => row.queue_id) } },
})
const events = await client.GET('/api/v1/events', { params: { query: { types: 'message.*', limit: 2 } } })
const missing = await client.GET('/api/v1/messages/{id}', { params: { path: { id: 'none' } } })
const wrong = await client.GET('/api/v1/messages', { params: { query: { limit: 0 } } })

process.stdout.write(
  JSON.stringify({
    recipients: rows.flatMap((row) => row.recipients.map(({ address }) => address)),
    held: held.data !== undefined && 'changed' in held.data ? held.data.changed : null,
    events: events.data?.events.map(({ type }) => type),
    missing: missing.error?.title,
    wrong: wrong.error?.errors?.map(({ pointer }) => pointer),
  }),
)
