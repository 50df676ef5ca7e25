/**
 * A proxy in front of PostgreSQL that breaks the writing sessions of a store at chosen statements, either before the server gets the
 * statement, or after it has answered and before the store gets the answer.
 */
import { connect, createServer, type Socket } from 'node:net'

/** Application names of writing sessions, as they are in the first message of a session. */
const WRITING = /application_name\0deferd (?:\d+ )?w\0/
/** The messages that end a statement: Sync and Query of the client, ReadyForQuery of the server. */
const [SYNC, QUERY, READY] = [0x53, 0x51, 0x5a]

export type Moment = 'before' | 'after'

/** Point at which a session breaks. */
export interface Cut {
  /** Number of the statement after the last `arm`, or after the last break, counted from 1 over all writing sessions. */
  readonly statement: number
  readonly moment: Moment
}

export interface StatementCutter {
  readonly port: number
  /** Breaks sessions at these statements, one after the other. No statement may be under way. */
  arm(cuts: readonly Cut[]): void
  /** Number of statements since the last `arm` or break, and number of breaks since the last `arm`. */
  readonly statements: number
  readonly breaks: number
  close(): Promise<void>
}

/** Divides a stream into messages of the protocol. The first message of a client has no type. */
class Messages {
  #rest: Buffer = Buffer.alloc(0)
  #isFirst: boolean

  constructor(ofClient: boolean) {
    this.#isFirst = ofClient
  }

  /** Messages that are complete with these bytes. */
  add(bytes: Buffer): readonly Buffer[] {
    this.#rest = Buffer.concat([this.#rest, bytes])
    const complete: Buffer[] = []
    for (;;) {
      const header = this.#isFirst ? 0 : 1
      if (this.#rest.length < header + 4) return complete
      const length = header + this.#rest.readUInt32BE(header)
      if (this.#rest.length < length) return complete
      complete.push(this.#rest.subarray(0, length))
      this.#rest = this.#rest.subarray(length)
      this.#isFirst = false
    }
  }
}

export async function startStatementCutter(serverPort: number): Promise<StatementCutter> {
  const sockets = new Set<Socket>()
  const state = { cuts: [] as readonly Cut[], statements: 0, breaks: 0 }

  /** Breaks a session. The server runs the statements that it got, then finds the end of the connection. */
  const breakOff = (client: Socket, server: Socket): void => {
    state.cuts = state.cuts.slice(1)
    state.statements = 0
    state.breaks++
    client.destroy()
    server.end()
  }

  const proxy = createServer({ noDelay: true }, (client) => {
    const server = connect({ port: serverPort, host: '127.0.0.1', noDelay: true })
    const [fromClient, fromServer] = [new Messages(true), new Messages(false)]
    let [isFirst, isWriting] = [true, false]
    /** Number of answers after which the session breaks; null for no break. */
    let lastAnswer: number | null = null
    /** Number of statements sent and not answered. */
    let unanswered = 0
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('close', () => server.destroyed || server.end())
    server.on('close', () => client.destroy())
    client.on('data', (bytes) => {
      for (const message of fromClient.add(bytes)) {
        // Statements behind the one after which the session breaks are lost with it.
        if (lastAnswer !== null) return
        if (isFirst) isWriting = WRITING.test(message.toString('latin1'))
        const isEnd = !isFirst && (message[0] === SYNC || message[0] === QUERY)
        isFirst = false
        if (isWriting && isEnd) {
          const [cut] = state.cuts
          const isHit = ++state.statements === cut?.statement
          if (isHit && cut?.moment === 'before') return breakOff(client, server)
          unanswered++
          if (isHit) lastAnswer = unanswered
        }
        server.write(message)
      }
    })
    server.on('data', (bytes) => {
      for (const message of fromServer.add(bytes)) {
        if (isWriting && message[0] === READY && unanswered > 0) {
          unanswered--
          if (lastAnswer !== null && --lastAnswer === 0) return breakOff(client, server)
        }
        if (!client.destroyed) client.write(message)
      }
    })
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const address = proxy.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    arm: (cuts) => Object.assign(state, { cuts, statements: 0, breaks: 0 }),
    get statements() {
      return state.statements
    },
    get breaks() {
      return state.breaks
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => void proxy.close(() => resolve()))
    },
  }
}
