/**
 * DNS queries that also return the AD bit of the answer (RFC 6840 §5.7), by which a validating resolver states that the answer is
 * authentic. Node's resolver does not return it. Sent over UDP, and over TCP when an answer is truncated. The resolver is trusted, so it
 * has to be on this machine or on a trusted network.
 */
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect, isIP } from 'node:net'
import {
  AUTHENTIC_DATA,
  decode,
  encode,
  RECURSION_DESIRED,
  streamEncode,
  type Answer,
  type DecodedPacket,
  type RecordType,
} from 'dns-packet'

/** Time limit of a question to one server, in ms. */
const TIMEOUT = 3_000
/** Number of questions until the look-up fails. The servers are asked in turn. */
const TRIES = 3
const PORT = 53

export interface DnsReply {
  readonly rcode: string
  /** True when the resolver found the answer authentic. */
  readonly authentic: boolean
  readonly answers: readonly Answer[]
}

export interface DnsFailure {
  readonly failure: string
}

interface Server {
  readonly address: string
  readonly port: number
}

/** Parses `address`, `address:port` or `[address]:port`. */
export function dnsServer(text: string): Server {
  if (isIP(text) !== 0) return { address: text, port: PORT }
  const [, bracketed, plain, port] = /^(?:\[(.*)\]|([^:]*))(?::(\d+))?$/.exec(text) ?? []
  return { address: bracketed ?? plain ?? text, port: port === undefined ? PORT : Number(port) }
}

export class DnsClient {
  readonly #servers: readonly Server[]

  constructor(servers: readonly string[]) {
    this.#servers = servers.map(dnsServer)
  }

  /** Asks the servers in turn until one answers with records, or that there are none. */
  async ask(name: string, type: RecordType): Promise<DnsReply | DnsFailure> {
    let last: DnsReply | DnsFailure = { failure: 'no name server is configured' }
    for (let n = 0; n < TRIES; n++) {
      const server = this.#servers[n % this.#servers.length]
      if (server === undefined) return last
      last = await askServer(server, name, type)
      if (!('failure' in last) && (last.rcode === 'NOERROR' || last.rcode === 'NXDOMAIN')) return last
    }
    return last
  }
}

async function askServer(server: Server, name: string, type: RecordType): Promise<DnsReply | DnsFailure> {
  const id = randomInt(65_536)
  const question = { type: 'query' as const, id, flags: RECURSION_DESIRED | AUTHENTIC_DATA, questions: [{ type, name }] }
  const isAnswer = (packet: DecodedPacket): boolean => {
    const [asked] = packet.questions ?? []
    return packet.id === id && packet.flag_qr && asked?.type === type && asked.name.toLowerCase() === name.toLowerCase()
  }
  const short = await overUdp(server, encode(question), isAnswer)
  const packet = typeof short === 'object' && short.flag_tc ? await overTcp(server, streamEncode(question), isAnswer) : short
  if (typeof packet === 'string') return { failure: packet }
  // dns-packet's types lack `rcode`, which `decode` sets.
  const { rcode } = packet as DecodedPacket & { readonly rcode: string }
  return { rcode, authentic: packet.flag_ad, answers: packet.answers ?? [] }
}

type IsAnswer = (packet: DecodedPacket) => boolean

function decoded(bytes: Buffer, isAnswer: IsAnswer): DecodedPacket | undefined {
  try {
    const packet = decode(bytes)
    return isAnswer(packet) ? packet : undefined
  } catch {
    // Malformed packets are skipped like those of other questions, and the question times out.
    return undefined
  }
}

function overUdp({ address, port }: Server, question: Buffer, isAnswer: IsAnswer): Promise<DecodedPacket | string> {
  return new Promise((resolve) => {
    const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4')
    const end = (result: DecodedPacket | string): void => {
      clearTimeout(timer)
      socket.close()
      resolve(result)
    }
    const timer = setTimeout(() => end('timeout'), TIMEOUT)
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
    socket.on('message', (bytes) => {
      const packet = decoded(bytes, isAnswer)
      if (packet !== undefined) end(packet)
    })
    // A connected socket gets packets of this server only.
    socket.connect(port, address, () => socket.send(question))
  })
}

function overTcp({ address, port }: Server, question: Buffer, isAnswer: IsAnswer): Promise<DecodedPacket | string> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port })
    let input: Buffer = Buffer.alloc(0)
    const end = (result: DecodedPacket | string): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(result)
    }
    const timer = setTimeout(() => end('timeout'), TIMEOUT)
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
    socket.once('close', () => end('connection closed'))
    socket.on('data', (bytes) => {
      input = Buffer.concat([input, bytes])
      if (input.length < 2 || input.length < 2 + input.readUInt16BE(0)) return
      end(decoded(input.subarray(2, 2 + input.readUInt16BE(0)), isAnswer) ?? 'malformed answer')
    })
    socket.write(question)
  })
}
