/**
 * A remote server that counts deliveries. The local part of a recipient selects the reply: `refuse-…` gets 550, `defer-…` gets 451
 * the first time, `busy-…` always gets 450, `ruled-…` gets 550 while `hasRule`, and any other address is accepted after `delay`.
 */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** A MAIL command. */
export interface BegunMail {
  /** Name in the EHLO command of its connection. */
  readonly client: string
  /** Time of the command and of its connection, in ms since the epoch. */
  readonly at: number
  readonly connectedAt: number
  /** Addresses of its RCPT commands that were accepted. */
  readonly to: string[]
}

export class RemoteLedger {
  /** Deliveries by the number in the X-Number field. */
  readonly delivered = new Map<number, number>()
  /** Failure notices, each by its Message-ID, by the number of the message they are about. */
  readonly noticed = new Map<number, Set<string>>()
  /** Times of the deliveries, in ms since the epoch, by the address of the recipient. */
  readonly deliveredTo = new Map<string, number[]>()
  /** Failure notices, each by its Message-ID, by the address of the recipient they are about. */
  readonly noticedAbout = new Map<string, Set<string>>()
  /** Notices that arrived again, recognized by their Message-ID. */
  repeatedNotices = 0
  /** Times of all connections, in ms since the epoch. */
  readonly connections: number[] = []
  /** All MAIL commands, in order. */
  readonly begun: BegunMail[] = []
  readonly #noticeIds = new Set<string>()
  /** Delay of the reply to the final dot, in ms. */
  delay = 0
  /** Delay of the reply to the final dot of a message to some recipients, in ms. */
  delayOf: (recipients: readonly string[]) => number = () => this.delay
  /** The reply to the final dot waits for this too. */
  gate: Promise<void> = Promise.resolve()
  /** Number of messages that are being received, and the most at once. */
  inTransfer = 0
  mostInTransfer = 0
  /** Every recipient is deferred while true. */
  isBusy = false
  /** A rule refuses the recipients `ruled-…` while true. */
  hasRule = false
  readonly #deferred = new Set<string>()
  /** Reply instead of the greeting, after which the connection is closed; null for a greeting. */
  refusal: string | null = null
  /** Sends no greeting. */
  isSilent = false
  /** Closes each connection at once. */
  isDead = false
  readonly #sockets = new Set<Socket>()
  #server: Server
  #port = 0

  constructor() {
    this.#server = this.#newServer()
  }

  async listen(address = '127.0.0.1'): Promise<number> {
    await new Promise<void>((resolve) => void this.#server.listen(this.#port, address, resolve))
    return (this.#port = (this.#server.address() as AddressInfo).port)
  }

  /** Listens again, on the same port, after `close`. */
  async reopen(): Promise<void> {
    this.#server = this.#newServer()
    await this.listen()
  }

  #newServer(): Server {
    return createServer({ noDelay: true }, (socket) => this.#serve(socket))
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()))
  }

  #serve(socket: Socket): void {
    this.connections.push(Date.now())
    if (this.isDead) return void socket.destroy()
    this.#sockets.add(socket)
    let buffer = ''
    let inData = false
    let accepted: string[] = []
    let client = ''
    let begun: BegunMail | undefined
    const connectedAt = Date.now()
    const say = (line: string) => void socket.write(`${line}\r\n`)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      if (inData) this.inTransfer--
      this.#sockets.delete(socket)
    })
    if (this.refusal !== null) {
      say(this.refusal)
      return void socket.end()
    }
    if (!this.isSilent) say('220 far.example ESMTP')
    socket.on('data', (bytes) => {
      buffer += bytes.toString('latin1')
      for (;;) {
        const end = buffer.indexOf(inData ? '\r\n.\r\n' : '\r\n')
        if (end < 0) return
        const piece = buffer.slice(0, end)
        buffer = buffer.slice(end + (inData ? 5 : 2))
        if (inData) {
          inData = false
          const recipients = accepted
          const take = () => {
            this.inTransfer--
            this.#note(piece, recipients)
            say('250 2.0.0 Ok: queued as FAR')
          }
          setTimeout(() => void this.gate.then(take), this.delayOf(recipients))
        } else {
          const reply = /^data/i.test(piece) && accepted.length === 0 ? '554 5.5.1 no valid recipients' : this.#answer(piece)
          if (/^rcpt/i.test(piece) && reply.startsWith('250')) accepted.push(addressIn(piece))
          if (/^rcpt/i.test(piece) && reply.startsWith('250')) begun?.to.push(addressIn(piece))
          if (/^(mail|rset)/i.test(piece)) accepted = []
          if (/^ehlo/i.test(piece)) client = piece.slice(5)
          if (/^mail/i.test(piece)) this.begun.push((begun = { client, at: Date.now(), connectedAt, to: [] }))
          inData = reply.startsWith('354')
          if (inData) this.mostInTransfer = Math.max(this.mostInTransfer, ++this.inTransfer)
          say(reply)
          if (reply.startsWith('221')) socket.end()
        }
      }
    })
  }

  #answer(line: string): string {
    const verb = line.slice(0, 4).toUpperCase()
    if (verb === 'EHLO') return '250-far.example\r\n250-PIPELINING\r\n250 ENHANCEDSTATUSCODES'
    if (verb === 'DATA') return '354 go on'
    if (verb === 'QUIT') return '221 2.0.0 Bye'
    if (verb !== 'RCPT') return '250 2.0.0 Ok'
    const address = addressIn(line)
    if (address.startsWith('refuse-')) return '550 5.1.1 no such user'
    if (this.hasRule && address.startsWith('ruled-')) return '550 5.7.1 refused by a rule'
    if (this.isBusy || address.startsWith('busy-')) return '450 4.2.1 busy'
    if (!address.startsWith('defer-') || this.#deferred.has(address)) return '250 2.1.5 Ok'
    this.#deferred.add(address)
    return '451 4.7.1 come back later'
  }

  #note(content: string, recipients: readonly string[]): void {
    const failed = [...content.matchAll(/^Final-Recipient: rfc822; *(\w+-(\d+)@\S+)/gim)]
    const id = /^Message-Id: (.*)$/im.exec(content)?.[1] ?? ''
    if (failed.length > 0 && this.#noticeIds.has(id)) this.repeatedNotices++
    if (failed.length > 0) this.#noticeIds.add(id)
    for (const match of failed) {
      const [, address = '', digits] = match
      const number = Number(digits)
      this.noticed.set(number, (this.noticed.get(number) ?? new Set()).add(id))
      this.noticedAbout.set(address, (this.noticedAbout.get(address) ?? new Set()).add(id))
    }
    const number = /^X-Number: (\d+)/m.exec(content)?.[1]
    if (failed.length > 0 || number === undefined) return
    count(this.delivered, Number(number))
    const now = Date.now()
    for (const address of recipients) this.deliveredTo.set(address, [...(this.deliveredTo.get(address) ?? []), now])
  }
}

/** The address of a MAIL or RCPT command. */
const addressIn = (line: string): string => /<(.*?)>/.exec(line)?.[1] ?? ''

function count(counts: Map<number, number>, key: number): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
