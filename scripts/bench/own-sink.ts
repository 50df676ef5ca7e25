/**
 * A sink that counts messages and throws them away. `node own-sink.ts SETTINGS`, with the members of `SinkSettings` as JSON, prints
 * `mesg=COUNT refused=COUNT` while they come. It takes about as much CPU time as smtp-sink, and needs no Postfix. Recipients named
 * `deferred…`, `bounced…` and `greylisted…` are refused.
 */
import { openSync, writeSync } from 'node:fs'
import { constants } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, TLSSocket, type SecureContext } from 'node:tls'
import { monotonic } from './clock.ts'

const END = Buffer.from('\r\n.\r\n')

export interface SinkSettings {
  readonly port: number
  /** File to which the number of each message and the time of its final dot are written, as two numbers of eight bytes; null for none. */
  readonly arrivals: string | null
  /** Percentage of the recipients that are deferred at random. */
  readonly deferred: number
  /** Number of addresses on which it listens: 127.0.0.1, 127.0.0.2 and so on. */
  readonly addresses: number
  /** STARTTLS with TLS 1.3; absent or null for none. */
  readonly tls?: SinkTls | null
}

interface SinkTls {
  readonly cert: string
  readonly key: string
  /** Whether a client may resume a session. */
  readonly resumes: boolean
}

export interface SinkEvents {
  /** A message with the number of its sender, `s1@…`; null for another sender, as of a notice. */
  readonly arrived: (number: number | null) => void
  /** A recipient was refused. */
  readonly refused?: () => void
  /** Whether the next recipient is deferred. */
  readonly defers?: () => boolean
  /** A TLS handshake has ended, with a resumed session or not. */
  readonly secured?: (resumed: boolean) => void
}

export function openSink(events: SinkEvents, tls: SinkTls | null = null): Server {
  const shared: Shared = { greylist: new Set(), context: tls === null ? null : contextOf(tls) }
  return createServer({ noDelay: true }, (socket) => serve(socket, events, shared))
}

/** Without tickets there is nothing to resume: Node keeps no sessions. */
const contextOf = ({ cert, key, resumes }: SinkTls): SecureContext =>
  createSecureContext({ cert, key, minVersion: 'TLSv1.3', secureOptions: resumes ? 0 : constants.SSL_OP_NO_TICKET })

/** State of all connections of a sink. */
interface Shared {
  readonly greylist: Set<string>
  /** Null without TLS. */
  readonly context: SecureContext | null
}

function serve(client: Socket, { arrived, refused, defers, secured }: SinkEvents, { greylist, context }: Shared): void {
  let socket = client
  let pending = Buffer.alloc(0)
  let inContent = false
  let sender = ''
  let recipients = 0

  /** Takes what is complete out of `pending`; the replies to it. */
  function take(): string {
    const end = pending.indexOf(inContent ? END : '\r\n')
    if (end < 0) {
      // The end of content can be cut in two.
      if (inContent) pending = pending.subarray(Math.max(0, pending.length - END.length + 1))
      return ''
    }
    if (inContent) {
      pending = pending.subarray(end + END.length)
      inContent = false
      arrived(numberOf(sender))
      return `250 2.0.0 Ok\r\n${take()}`
    }
    const line = pending.toString('latin1', 0, end)
    const reply = replyTo(line)
    inContent = reply.startsWith('354')
    // Content may be empty: the line break before it may be the one that ends DATA.
    pending = pending.subarray(inContent ? end : end + 2)
    return `${reply}${take()}`
  }

  function replyTo(line: string): string {
    switch (line.slice(0, 4).toUpperCase()) {
      case 'EHLO':
        return `250-sink.test\r\n250-PIPELINING\r\n${context !== null && socket === client ? '250-STARTTLS\r\n' : ''}250-8BITMIME\r\n250 SMTPUTF8\r\n`
      case 'STAR':
        return '220 2.0.0 Ready to start TLS\r\n'
      case 'MAIL':
        sender = pathOf(line)
        recipients = 0
        return '250 2.1.0 Ok\r\n'
      case 'RCPT':
        return replyToRecipient(pathOf(line))
      case 'DATA':
        return recipients === 0 ? '554 5.5.1 no valid recipients\r\n' : '354 End data with <CR><LF>.<CR><LF>\r\n'
      case 'QUIT':
        return '221 2.0.0 Bye\r\n'
      default:
        return '250 2.0.0 Ok\r\n'
    }
  }

  function replyToRecipient(recipient: string): string {
    const reply = refusalOf(recipient)
    if (reply === null) recipients++
    else refused?.()
    return `${reply ?? '250 2.1.5 Ok'}\r\n`
  }

  function refusalOf(recipient: string): string | null {
    if (defers?.() === true) return '450 4.2.2 the mailbox is full'
    if (recipient.startsWith('deferred')) return '450 4.2.1 mailbox busy'
    if (recipient.startsWith('bounced')) return '550 5.1.1 no such user'
    if (!recipient.startsWith('greylisted') || greylist.delete(sender)) return null
    greylist.add(sender)
    return '450 4.2.0 try again later'
  }

  const secure = (secureContext: SecureContext): void => {
    client.removeAllListeners('data')
    const stream = new TLSSocket(client, { isServer: true, secureContext })
    stream.once('secure', () => secured?.(stream.isSessionReused()))
    socket = stream
    listen()
  }
  const listen = (): void => {
    socket.on('data', (chunk) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
      const replies = take()
      if (replies !== '') socket.write(replies)
      if (replies.startsWith('220 ') && context !== null) secure(context)
      if (replies.includes('221 ')) socket.end()
    })
    socket.on('error', () => socket.destroy())
  }
  listen()
  socket.write('220 sink.test ESMTP\r\n')
}

const pathOf = (line: string): string => line.slice(line.indexOf('<') + 1, line.indexOf('>'))

function numberOf(sender: string): number | null {
  const digits = /^s(\d+)@/.exec(sender)?.[1]
  return digits === undefined ? null : Number(digits)
}

if (import.meta.main) {
  const settings = JSON.parse(process.argv[2] ?? '') as SinkSettings
  const arrivals = settings.arrivals === null ? null : openSync(settings.arrivals, 'a')
  const counts = { arrived: 0, refused: 0 }
  let fresh: number[] = []
  let timer: NodeJS.Timeout | null = null
  const tell = () => {
    timer = null
    // The times first: they are complete when a reader sees the count.
    if (arrivals !== null) writeSync(arrivals, new Float64Array(fresh))
    fresh = []
    writeSync(1, `mesg=${counts.arrived} refused=${counts.refused}\n`)
  }
  const arrived = (number: number | null) => {
    counts.arrived++
    if (arrivals !== null) fresh.push(number ?? Number.NaN, monotonic())
    timer ??= setTimeout(tell, 5)
  }
  const refused = () => {
    counts.refused++
    timer ??= setTimeout(tell, 5)
  }
  const defers = () => Math.random() * 100 < settings.deferred
  for (let n = 1; n <= settings.addresses; n++) openSink({ arrived, refused, defers }, settings.tls).listen(settings.port, `127.0.0.${n}`)
}
