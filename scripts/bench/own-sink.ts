/**
 * A sink that counts messages and throws them away: `node own-sink.ts PORT` prints `mesg=COUNT` while they come. It
 * takes about as much CPU time as smtp-sink, and needs no Postfix. `node own-sink.ts PORT PERCENT ADDRESSES` defers so many of 100
 * recipients, and listens on 127.0.0.1, 127.0.0.2 and so on.
 */
import { writeSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'

const END = Buffer.from('\r\n.\r\n')

/** Whether the next recipient is deferred. */
type Defers = () => boolean

const never: Defers = () => false

/** A server that calls `arrived` for each message. */
export const openSink = (arrived: () => void, defers: Defers = never): Server =>
  createServer({ noDelay: true }, (socket) => serve(socket, arrived, defers))

function serve(socket: Socket, arrived: () => void, defers: Defers): void {
  let pending = Buffer.alloc(0)
  let inContent = false
  /** Whether a recipient of the transaction was accepted. */
  let hasRecipient = false

  function replyTo(verb: string): string {
    if (verb === 'RCPT' && defers()) return '450 4.2.2 the mailbox is full\r\n'
    if (verb === 'DATA' && !hasRecipient) return '554 5.5.1 no valid recipients\r\n'
    if (verb === 'MAIL' || verb === 'RCPT') hasRecipient = verb === 'RCPT'
    return usualReplyTo(verb)
  }

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
      arrived()
      return `250 2.0.0 Ok\r\n${take()}`
    }
    const verb = pending.toString('latin1', 0, Math.min(end, 4)).toUpperCase()
    // Content may be empty: the line break before it may be the one that ends DATA.
    inContent = verb === 'DATA' && hasRecipient
    pending = pending.subarray(inContent ? end : end + 2)
    return `${replyTo(verb)}${take()}`
  }

  socket.on('data', (chunk) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    const replies = take()
    if (replies !== '') socket.write(replies)
    if (replies.includes('221 ')) socket.end()
  })
  socket.on('error', () => socket.destroy())
  socket.write('220 sink.test ESMTP\r\n')
}

function usualReplyTo(verb: string): string {
  switch (verb) {
    case 'EHLO':
      return '250-sink.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n'
    case 'DATA':
      return '354 End data with <CR><LF>.<CR><LF>\r\n'
    case 'QUIT':
      return '221 2.0.0 Bye\r\n'
    default:
      return '250 2.0.0 Ok\r\n'
  }
}

if (import.meta.main) {
  let count = 0
  let timer: NodeJS.Timeout | null = null
  const tell = () => {
    timer = null
    writeSync(1, `mesg=${count}\n`)
  }
  const arrived = () => {
    count++
    timer ??= setTimeout(tell, 5)
  }
  const [port = 0, percent = 0, addresses = 1] = process.argv.slice(2).map(Number)
  const defers = () => Math.random() * 100 < percent
  for (let n = 1; n <= addresses; n++) openSink(arrived, defers).listen(port, `127.0.0.${n}`)
}
