/** A DNS server on loopback that answers TXT questions (RFC 1035 §4). */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'

const HEADER = 12
const QUESTION_TAIL = 4
const TXT = 16
const SERVFAIL = 2
const NXDOMAIN = 3

/** Texts of TXT records by name; `fails` for SERVFAIL. Other names do not exist. */
export type Zone = Map<string, readonly string[] | 'fails'>

export class DnsServer implements AsyncDisposable {
  readonly zone: Zone = new Map()
  readonly #socket: Socket

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('message', (question, from) => socket.send(this.#answer(question), from.port, from.address))
  }

  static async start(): Promise<DnsServer> {
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return new DnsServer(socket)
  }

  /** Value of dns_servers. */
  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`
  }

  #answer(question: Buffer): Buffer {
    const [name, end] = nameAt(question, HEADER)
    const found = this.zone.get(name)
    const records = found === 'fails' || found === undefined ? [] : found.map(txtRecord)
    const header = Buffer.from(question.subarray(0, HEADER))
    header.writeUInt16BE(0x8180 | (found === 'fails' ? SERVFAIL : found === undefined ? NXDOMAIN : 0), 2)
    header.writeUInt16BE(records.length, 6)
    header.writeUInt32BE(0, 8)
    return Buffer.concat([header, question.subarray(HEADER, end + QUESTION_TAIL), ...records])
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => void this.#socket.close(() => resolve()))
  }
}

function nameAt(message: Buffer, start: number): readonly [name: string, end: number] {
  const labels: string[] = []
  let at = start
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return [labels.join('.').toLowerCase(), at + 1]
}

function txtRecord(text: string): Buffer {
  const strings = (text.match(/.{1,255}/g) ?? ['']).map((part) => Buffer.from(`${String.fromCharCode(part.length)}${part}`, 'latin1'))
  const data = Buffer.concat(strings)
  const head = Buffer.from([0xc0, HEADER, 0, TXT, 0, 1, 0, 0, 0, 60, data.length >> 8, data.length & 0xff])
  return Buffer.concat([head, data])
}
