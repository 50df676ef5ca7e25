/**
 * Relays a message much larger than the memory allowed for it; used by the short and the long test. The relay runs in a process
 * of its own, so that its memory can be measured.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const LINES = Buffer.from(`${'x'.repeat(76)}\r\n`.repeat(840))
const MEGABYTE = 1_000_000

export interface LargeMessageReport {
  /** Maximum growth of the relay's memory, in MB. */
  readonly growth: number
  /** Size of the received content, in MB. */
  readonly arrived: number
}

export async function relayLargeMessage(megabytes: number): Promise<LargeMessageReport> {
  const directory = mkdtempSync(join(tmpdir(), 'deferd-giant-'))
  const far = remoteServer()
  const settings = [
    `queue_directory=${directory}`,
    'smtpd_listen=127.0.0.1:0',
    `relayhost=[127.0.0.1]:${await far.listen()}`,
    `message_size_limit=${2 * megabytes * MEGABYTE}`,
  ]
  const program = join(import.meta.dirname, 'relay-process.ts')
  const child = spawn(process.execPath, [program, '', ...settings], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
    await submit(Number(port), MEGABYTE)
    await far.finished(1)
    const before = memoryOf(child.pid ?? 0)
    let most = before
    const watch = setInterval(() => (most = Math.max(most, memoryOf(child.pid ?? 0))), 20)
    await submit(Number(port), megabytes * MEGABYTE)
    await far.finished(2)
    clearInterval(watch)
    return { growth: most - before, arrived: far.bytes() / MEGABYTE }
  } finally {
    child.kill('SIGKILL')
    far.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Resident memory in MB. */
function memoryOf(pid: number): number {
  const status = `/proc/${pid}/status`
  const kilobytes = existsSync(status)
    ? /VmRSS:\s+(\d+)/.exec(readFileSync(status, 'utf8'))?.[1]
    : execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })
  return Number(kilobytes) / 1000
}

async function submit(port: number, size: number): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port })
  await reply(socket)
  for (const line of ['EHLO app.example', 'MAIL FROM:<app@us.example>', 'RCPT TO:<ann@far.example>', 'DATA']) {
    socket.write(`${line}\r\n`)
    await reply(socket)
  }
  socket.write('Subject: giant\r\n\r\n')
  for (let sent = 0; sent < size; sent += LINES.length) if (!socket.write(LINES)) await once(socket, 'drain')
  socket.write('.\r\n')
  const queued = await reply(socket)
  socket.destroy()
  if (!queued.startsWith('250')) throw new Error(`refused: ${queued}`)
}

async function reply(socket: Socket): Promise<string> {
  let text = ''
  while (!/^\d{3} .*\r\n$/m.test(text)) text += String((await once(socket, 'data'))[0])
  return text
}

/** Accepts all content and only counts its bytes. */
function remoteServer() {
  const seen = { bytes: 0, messages: 0 }
  let wake: () => void = () => undefined
  const server = createServer((socket) => {
    let tail = ''
    let content = false
    socket.write('220 far.example\r\n')
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      if (content) seen.bytes += chunk.length
      tail = (tail + chunk.toString('latin1')).slice(-5_000)
      if (content && tail.endsWith('\r\n.\r\n')) {
        content = false
        seen.messages++
        socket.write('250 2.0.0 Ok\r\n')
        wake()
      } else if (!content && tail.endsWith('\r\n')) {
        content = /^DATA\r\n/im.test(tail)
        const commands = tail.split('\r\n').filter((line) => line !== '')
        socket.write(commands.map((line) => (/^DATA/i.test(line) ? '354 go on\r\n' : '250 2.0.0 Ok\r\n')).join(''))
      } else return
      tail = ''
    })
  })
  return {
    listen: async (): Promise<number> => {
      await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
      return (server.address() as AddressInfo).port
    },
    finished: async (count: number): Promise<void> => {
      while (seen.messages < count) await new Promise<void>((resolve) => (wake = resolve))
    },
    bytes: () => seen.bytes,
    close: () => void server.close(),
  }
}
