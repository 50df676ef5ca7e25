/** Requests to HTTP servers, byte by byte: no client library corrects or completes them. */
import { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'

export interface RawResponse {
  readonly status: number
  /** Names in lower case; repeated fields joined with a line feed. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** Address of a server: a port on 127.0.0.1, or the path of a Unix socket. */
export type At = number | string

export interface RawOptions {
  readonly tls?: ConnectionOptions
  /** Called with the connection after the bytes have been written. */
  readonly written?: (socket: Socket) => void
}

/** A connection that is read to its end, also after a write has failed: the server may have answered before it closed. */
class ReadSocket extends Socket {
  writeError: Error | null = null

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    // oxlint-disable-next-line no-underscore-dangle -- the method that node:stream calls
    super._write(chunk, encoding, (error) => {
      this.writeError ??= error ?? null
      done()
    })
  }
}

const open = (at: At, tls: ConnectionOptions | undefined): Socket => {
  if (tls !== undefined) return connectTls({ port: Number(at), host: '127.0.0.1', ...tls })
  return typeof at === 'string' ? new ReadSocket().connect(at) : new ReadSocket().connect(at, '127.0.0.1')
}

/** Everything that the server sends until it closes the connection. Rejects when it closes without a byte after a failed write. */
export function conversation(at: At, bytes: string, { tls, written }: RawOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = open(at, tls)
    let text = ''
    let failure: Error | null = null
    socket.setEncoding('latin1')
    socket.on('data', (data) => (text += String(data)))
    socket.on('error', (error) => (failure = error))
    socket.on('close', () => {
      if (socket instanceof ReadSocket) failure ??= socket.writeError
      if (text === '' && failure !== null) reject(failure)
      else resolve(text)
    })
    socket.write(Buffer.from(bytes, 'latin1'), () => written?.(socket))
  })
}

export interface Received {
  readonly text: string
  /** Code of the first error of the connection. */
  readonly error: string | undefined
}

/** Writes the pieces one after another, and reads only then, until the server ends or the last chunk of an answer has arrived. */
export async function writeThenRead(socket: Socket, pieces: readonly string[], gap = 0): Promise<Received> {
  let [text, error]: [string, string | undefined] = ['', undefined]
  socket.on('error', (failure: NodeJS.ErrnoException) => (error ??= failure.code))
  const closed = new Promise((resolve) => void socket.once('close', resolve))
  socket.pause()
  for (const piece of pieces) {
    if (error !== undefined) break
    await new Promise((resolve) => void socket.write(piece, 'latin1', resolve))
    if (gap > 0) await pause(gap)
  }
  socket.setEncoding('latin1').on('data', (data) => {
    text += String(data)
    if (text.endsWith('\r\n0\r\n\r\n')) socket.end()
  })
  socket.resume()
  await closed
  return { text, error }
}

/** Parses responses that are one after another on a connection. Bodies have a length, are chunked, or last until the end. */
export function responsesIn(text: string): readonly RawResponse[] {
  const responses: RawResponse[] = []
  for (let rest = text; rest !== '';) {
    const [, head = '', after = ''] = /^(.*?)\r\n\r\n(.*)$/s.exec(rest) ?? []
    const [line = '', ...fields] = head.split('\r\n')
    const headers = new Map<string, string>()
    for (const field of fields) {
      const [, name = '', value = ''] = /^([^:]*): ?(.*)$/s.exec(field) ?? []
      const former = headers.get(name.toLowerCase())
      headers.set(name.toLowerCase(), former === undefined ? value : `${former}\n${value}`)
    }
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(line)?.[1])
    const [body, left] = status < 200 || status === 304 ? ['', after] : bodyOf(headers, after)
    responses.push({ status, headers, body })
    rest = left
  }
  return responses
}

function bodyOf(headers: ReadonlyMap<string, string>, text: string): readonly [body: string, rest: string] {
  const length = headers.get('content-length')
  if (length !== undefined) return [text.slice(0, Number(length)), text.slice(Number(length))]
  if (headers.get('transfer-encoding') !== 'chunked') return [text, '']
  let body = ''
  for (let rest = text; ;) {
    const [, size = '0', after = ''] = /^([\da-f]+)\r\n(.*)$/is.exec(rest) ?? []
    const count = Number.parseInt(size, 16)
    if (count === 0) return [body, after.replace(/^\r\n/, '')]
    body += after.slice(0, count)
    rest = after.slice(count + 2)
  }
}

/** The first final response to these bytes. The request has to close the connection, or to fail. */
export async function rawResponse(at: At, bytes: string, options: RawOptions = {}): Promise<RawResponse> {
  const found = responsesIn(await conversation(at, bytes, options)).find(({ status }) => status >= 200)
  if (found === undefined) throw new Error('the server closed the connection without a response')
  return found
}

export interface RequestParts {
  readonly method?: string
  readonly target?: string
  /** Fields besides Host and Connection; a list for fields that are repeated or in a certain order. */
  readonly fields?: Readonly<Record<string, string>> | readonly (readonly [string, string])[]
  readonly host?: string | null
  readonly body?: string
}

/** The bytes of a request after which the connection is closed. */
export function requestBytes({ method = 'GET', target = '/', fields = {}, host = 'localhost', body = '' }: RequestParts): string {
  const pairs: readonly (readonly [string, string])[] = Array.isArray(fields) ? fields : Object.entries(fields)
  const lines = [
    `${method} ${target} HTTP/1.1`,
    ...(host === null ? [] : [`Host: ${host}`]),
    'Connection: close',
    ...(body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body, 'latin1')}`]),
    ...pairs.map(([name, value]) => `${name}: ${value}`),
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

export const ask = (at: At, parts: RequestParts, options: RawOptions = {}): Promise<RawResponse> =>
  rawResponse(at, requestBytes(parts), options)
