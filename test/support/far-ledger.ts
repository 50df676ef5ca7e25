/**
 * A far side that keeps a ledger: what arrived how often. The recipient says what it wants: `refuse-…` gets 550,
 * `defer-…` gets 451 the first time, `busy-…` gets 450
 * always, everybody else is served after a moment.
 */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'

export class FarLedger {
  /** Deliveries by the number in the X-Number field. */
  readonly delivered = new Map<number, number>()
  /** Failure notices, each by its Message-ID, by the number of the message they are about. */
  readonly noticed = new Map<number, Set<string>>()
  /** How long a reply to the final dot takes, in ms. */
  delay = 0
  readonly #deferred = new Set<string>()
  readonly #sockets = new Set<Socket>()
  readonly #server: Server

  constructor() {
    this.#server = createServer({ noDelay: true }, (socket) => this.#serve(socket))
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => void this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()))
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    let buffer = ''
    let inData = false
    let accepted = 0
    const say = (line: string) => void socket.write(`${line}\r\n`)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
    say('220 far.example ESMTP')
    socket.on('data', (bytes) => {
      buffer += bytes.toString('latin1')
      for (;;) {
        const end = buffer.indexOf(inData ? '\r\n.\r\n' : '\r\n')
        if (end < 0) return
        const piece = buffer.slice(0, end)
        buffer = buffer.slice(end + (inData ? 5 : 2))
        if (inData) {
          inData = false
          setTimeout(() => {
            this.#note(piece)
            say('250 2.0.0 Ok: queued as FAR')
          }, this.delay)
        } else {
          const reply = /^data/i.test(piece) && accepted === 0 ? '554 5.5.1 no valid recipients' : this.#answer(piece)
          if (/^rcpt/i.test(piece) && reply.startsWith('250')) accepted++
          if (/^(mail|rset)/i.test(piece)) accepted = 0
          inData = reply.startsWith('354')
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
    const address = /<(.*?)>/.exec(line)?.[1] ?? ''
    if (address.startsWith('refuse-')) return '550 5.1.1 no such user'
    if (address.startsWith('busy-')) return '450 4.2.1 busy'
    if (!address.startsWith('defer-') || this.#deferred.has(address)) return '250 2.1.5 Ok'
    this.#deferred.add(address)
    return '451 4.7.1 come back later'
  }

  #note(content: string): void {
    const failed = [...content.matchAll(/^Final-Recipient: rfc822; *\w+-(\d+)@/gim)]
    const id = /^Message-Id: (.*)$/im.exec(content)?.[1] ?? ''
    for (const match of failed) {
      const number = Number(match[1])
      this.noticed.set(number, (this.noticed.get(number) ?? new Set()).add(id))
    }
    const number = /^X-Number: (\d+)/m.exec(content)?.[1]
    if (failed.length === 0 && number !== undefined) count(this.delivered, Number(number))
  }
}

function count(counts: Map<number, number>, key: number): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
