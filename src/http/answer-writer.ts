/**
 * Writes an answer as the response of a request, in pieces, so that the progress of its client can be seen. Responses are not cached unless
 * the answer says so.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { jsonLine } from '../presentation/text.ts'
import type { Timers } from '../system/clock.ts'
import { eventLoopTurn } from '../system/event-loop.ts'
import type { EventStreams } from './event-streams.ts'
import { commandFailure } from './command-failure.ts'
import type { Answer } from './route-table.ts'
import { closeAfter } from './staged-close.ts'
import type { UnreadAnswers } from './unread-answers.ts'

export interface Exchange {
  /** X-Request-Id of the answer. */
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly streams: EventStreams
  readonly clock: Timers
  readonly unread: UnreadAnswers | null
  /** Aborted when the connection has ended. */
  readonly signal: AbortSignal
  /** Resolves with false when the client has lost the right to the response. */
  readonly confirm: () => Promise<boolean>
}

type Headers = Readonly<Record<string, string>>
type Content = string | Uint8Array

/** Maximum size of a piece in bytes. */
const PIECE = 64 * 1024

function begin(response: ServerResponse, status: number, contentType: string | null, headers: Headers = {}): void {
  response.writeHead(status, { 'cache-control': 'no-store', ...(contentType === null ? {} : { 'content-type': contentType }), ...headers })
}

/** Resolves when the response has ended, or events are subscribed to. Rejects before the response has begun, or with its failure. */
export async function sendAnswer(exchange: Exchange, answer: Answer): Promise<void> {
  const { request, response, clock, unread } = exchange
  // The end of the request may be among the bytes that node:http is parsing.
  if (!request.complete) await eventLoopTurn()
  if (!request.complete) closeAfter(response, clock)
  // Streams of events have a limit of their own.
  if (answer.kind !== 'events') unread?.watch(response)
  switch (answer.kind) {
    case 'json':
      return whole(exchange, answer.status, { contentType: 'application/json', text: jsonLine(answer.value), headers: answer.headers })
    case 'text':
      return whole(exchange, answer.status, answer)
    case 'redirect':
      return whole(exchange, 303, { contentType: null, text: '', headers: { location: answer.location, ...answer.headers } })
    case 'lines':
      begin(response, 200, 'application/x-ndjson')
      await answer
        .produce(
          (value) => void response.write(jsonLine(value)),
          () => response.writableLength > MOST_UNREAD,
        )
        .catch((error: unknown) => response.write(jsonLine({ failed: commandFailure(error) })))
      response.end()
      return
    case 'stream':
      if (request.method === 'HEAD') return end(response, answer.contentType, answer.headers)
      return stream(response, answer)
    case 'events':
      if (request.method === 'HEAD') return end(response, 'text/event-stream', {})
      exchange.streams.open(exchange, answer.subscribe, (headers) => begin(response, 200, 'text/event-stream', headers))
      return
    case 'complete-events':
      if (request.method === 'HEAD') return end(response, 'text/event-stream', {})
      return completeEvents(exchange, answer)
  }
}

/** In bytes. */
const MOST_UNREAD = 256 * 1024

interface Whole {
  readonly contentType: string | null
  readonly text: string
  readonly headers?: Headers | undefined
}

/** Sends a body whose length is known; for HEAD its length alone. */
async function whole({ request, response, unread }: Exchange, status: number, { contentType, text, headers }: Whole): Promise<void> {
  const length = Buffer.byteLength(text)
  begin(response, status, contentType, { ...headers, 'content-length': String(length) })
  if (length <= PIECE || unread === null || request.method === 'HEAD') response.end(text)
  else await pipeline(piecesOf(text), response)
}

function* piecesOf(content: Content): Generator<Uint8Array> {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  for (let from = 0; from < bytes.length; from += PIECE) yield bytes.subarray(from, from + PIECE)
}

/** Ends the response to HEAD, for which nothing is produced. */
function end(response: ServerResponse, contentType: string, headers: Headers | undefined): void {
  begin(response, 200, contentType, headers)
  response.end()
}

/** Takes the first piece before the response begins, so that an early failure has a status of its own. */
async function stream(response: ServerResponse, { contentType, chunks, headers }: Extract<Answer, { kind: 'stream' }>): Promise<void> {
  const iterator = chunks[Symbol.asyncIterator]()
  const first = await iterator.next()
  begin(response, 200, contentType, headers)
  await pipeline(rest(first, iterator), response)
}

/** Sends events like `stream`, beside the comments that keep the connection. */
async function completeEvents(
  { response, confirm, streams }: Exchange,
  { chunks }: Extract<Answer, { kind: 'complete-events' }>,
): Promise<void> {
  const iterator = chunks[Symbol.asyncIterator]()
  const first = await iterator.next()
  streams.open({ response, confirm }, NO_EVENTS, (headers) => begin(response, 200, 'text/event-stream', headers))
  await pipeline(rest(first, iterator), response)
}

const NO_EVENTS = () => () => undefined

async function* rest(first: IteratorResult<Content>, iterator: AsyncIterator<Content>): AsyncGenerator<Uint8Array> {
  try {
    for (let next = first; next.done !== true; next = await iterator.next()) yield* piecesOf(next.value)
  } finally {
    await iterator.return?.()
  }
}
