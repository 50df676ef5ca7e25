/**
 * Fills a small disk below a real daemon. Runs in a mount namespace of its own (`unshare -Urm node full-disk-scenarios.ts FOLDER
 * SCENARIO MEGABYTES SECONDS`, SECONDS for each measurement of the throughput, 0 for none); prints a report as JSON.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { ApiProgram } from './api-program.ts'
import { KillableRelay } from './killable-relay.ts'
import { portBelowEphemeral } from './ports.ts'

const [folder = '', scenario = '', megabytes = '', measured = ''] = process.argv.slice(2)
execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=711`, 'tmpfs', folder])
process.env['TMPDIR'] = folder
const otherFile = join(folder, 'other')

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Whether the condition holds within a time in ms. */
async function within(ms: number, condition: () => boolean | Promise<boolean>): Promise<boolean> {
  for (const until = performance.now() + ms; performance.now() < until; await pause(20)) if (await condition()) return true
  return false
}

/** Takes all free bytes of the disk with another file. */
function takeTheRest(): number {
  const file = openSync(otherFile, 'a')
  try {
    for (const size of [1 << 20, 1 << 12]) {
      for (const block = Buffer.alloc(size, 1); ;) {
        try {
          if (writeSync(file, block) < size) break
        } catch {
          break
        }
      }
    }
  } finally {
    closeSync(file)
  }
  return statfsSync(folder).bavail
}

/** Messages delivered per second, for so many seconds. */
async function throughput({ far }: KillableRelay, seconds: number): Promise<number> {
  const before = far.delivered.size
  await pause(1000 * seconds)
  return (far.delivered.size - before) / (seconds || 1)
}

function account({ far, acknowledged }: KillableRelay) {
  const lost = [...acknowledged.keys()].filter((number) => !far.delivered.has(number)).length
  const duplicates = [...far.delivered.values()].reduce((sum, times) => sum + times - 1, 0)
  return { acknowledged: acknowledged.size, lost, duplicates }
}

/** Reply code and enhanced status. */
const begin = (reply: string): string => reply.slice(0, 9)

const codesOf = (replies: readonly string[]): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(replies, (reply) => reply)].map(([code, those]) => [code, those.length]))

/** Deferred mail fills the disk; another file takes the rest; the remote server recovers; the file is removed. */
async function deferredMail(http: number) {
  const healthOf = async () => {
    const answer = await fetch(`http://127.0.0.1:${http}/healthz`)
    return { status: answer.status, ...((await answer.json()) as { readonly space?: string }) }
  }
  const lab = new KillableRelay({ http_listen: `127.0.0.1:${http}`, message_size_limit: '1000000', smtpd_error_sleep_time: '0' })
  try {
    lab.load.contentBytes = 100_000
    await lab.open(4, () => 'ann-1@far.example')
    await lab.startDaemon()
    await lab.acknowledges(20)
    const usual = await throughput(lab, Number(measured))
    lab.far.isBusy = true
    const isFull = await within(60_000, () => lab.load.refusals.length >= 20)
    const left = takeTheRest()
    await pause(1_500)
    const full = await healthOf()
    const waiting = lab.acknowledged.size - lab.far.delivered.size
    lab.far.isBusy = false
    const queued = [...lab.acknowledged.keys()]
    const drainedWhileFull = await within(30_000, () => queued.every((number) => lab.far.delivered.has(number)))
    rmSync(otherFile)
    const freedAt = performance.now()
    const delivered = lab.far.delivered.size
    let rates: number[] = []
    const hasRecovered = await within(60_000, async () => {
      if (measured === '0') return lab.far.delivered.size > delivered + 20
      rates = [...rates, await throughput(lab, Number(measured))]
      return (rates.at(-1) ?? 0) >= 0.95 * usual
    })
    const recoveredAfter = (performance.now() - freedAt) / 1000
    await lab.quiet()
    const drained = await lab.drained(30_000)
    const healthy = await within(5_000, async () => (await healthOf()).status === 200)
    const exit = (await lab.terminate()).code
    await lab.startDaemon()
    const reply = await lab.sendOne()
    return {
      isFull,
      left,
      waiting,
      full: [full.status, full.space],
      refusals: codesOf(lab.load.refusals.map(begin)),
      drainedWhileFull,
      drained,
      healthy,
      usual,
      rates,
      hasRecovered,
      recoveredAfter,
      exit,
      reply: reply.slice(0, 9),
      ...account(lab),
      log: lab.log.filter((line) => /\b(?:error|fatal|panic): /.test(line)).slice(0, 5),
    }
  } finally {
    await lab.close()
  }
}

/** Sends one message of so many bytes; resolves with the reply to MAIL, when that is a refusal, or to the message. */
async function sendBig(port: number, bytes: number, declared: boolean): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.on('error', () => undefined)
  const replies = (async function* () {
    let rest = ''
    for await (const piece of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      const lines = (rest + piece.toString('latin1')).split('\r\n')
      rest = lines.pop() ?? ''
      yield* lines.filter((line) => /^\d{3} /.test(line))
    }
  })()
  const say = async (text: string | Buffer): Promise<string> => {
    if (text !== '') socket.write(text)
    return (await replies.next()).value ?? '(closed)'
  }
  const content = Buffer.from(`Subject: big\r\n\r\n${`${'y'.repeat(76)}\r\n`.repeat(Math.ceil(bytes / 78))}.\r\n`)
  let reply = ''
  for (const line of [
    '',
    'EHLO big.example\r\n',
    `MAIL FROM:<app@us.example>${declared ? ` SIZE=${bytes}` : ''}\r\n`,
    'RCPT TO:<ann-1@far.example>\r\n',
    'DATA\r\n',
    content,
  ]) {
    reply = await say(line)
    if (!/^[23]/.test(reply)) break
  }
  socket.destroy()
  return reply
}

/** Forty clients send at the same time more than the disk holds; then another file takes the rest, and the daemon starts again. */
async function bigMessages(http: number) {
  const lab = new KillableRelay({
    http_listen: `127.0.0.1:${http}`,
    message_size_limit: String(Math.round((Number(megabytes) * 1e6) / 25)),
  })
  const bytes = Math.round((Number(megabytes) * 1e6) / 28)
  try {
    await lab.open(0)
    await lab.startDaemon()
    const rounds: Record<string, number>[] = []
    const free: number[] = []
    for (const declared of [true, false, true]) {
      // Mail that is delivered meanwhile would leave its space to the others.
      lab.far.isBusy = true
      const replies = await Promise.all(Array.from({ length: 40 }, () => sendBig(lab.load.port ?? 0, bytes, declared)))
      lab.far.isBusy = false
      rounds.push(codesOf(replies.map(begin)))
      if (!(await lab.drained(30_000))) throw new Error('not drained')
      free.push(statfsSync(folder).bavail)
    }
    const health = await fetch(`http://127.0.0.1:${http}/healthz`)
    const one = await lab.sendOne()
    takeTheRest()
    const exits = [(await lab.terminate()).code]
    takeTheRest()
    await lab.startDaemon()
    const full = await lab.sendOne()
    rmSync(otherFile)
    const accepts = await within(10_000, async () => (await lab.sendOne()).startsWith('250'))
    exits.push((await lab.terminate()).code)
    return {
      rounds,
      free,
      health: health.status,
      one: one.slice(0, 9),
      full: full.slice(0, 9),
      accepts,
      exits,
      log: lab.log.filter((line) => /\b(?:error|fatal|panic): /.test(line)).slice(0, 5),
    }
  } finally {
    await lab.close()
  }
}

/** Mail over HTTP fills the disk; another file takes the rest; the file is removed, and the clients repeat what was refused. */
async function mailOverHttp() {
  const lab = new KillableRelay({ message_size_limit: '1000000' })
  try {
    await lab.open(0)
    lab.far.isBusy = true
    await lab.startDaemon()
    const program = await ApiProgram.of(lab.queueDirectory)
    const refused = new Map<number, string>()
    const submit = async (number: number, bytes: number): Promise<void> => {
      const content = `X-Number: ${number}\r\n\r\n${`${'x'.repeat(76)}\r\n`.repeat(Math.ceil(bytes / 78))}`
      const { status, headers, json } = await program.mail({ to: `ann-${number}@far.example`, content, key: `mail-${number}` })
      if (status === 202) lab.load.acknowledge(number, String(json['queue_id']))
      else refused.set(number, `${status} ${String(json['type'])}${headers.has('retry-after') ? '' : ' without Retry-After'}`)
    }
    const client = async (): Promise<void> => {
      while (refused.size < 20) await submit(lab.load.takeNumber(), 100_000)
    }
    await Promise.all([client(), client(), client(), client()])
    const left = takeTheRest()
    await pause(1_500)
    for (const bytes of [10, 1_000, 100_000, 500_000]) await submit(lab.load.takeNumber(), bytes)
    let kept = 0
    for (const number of refused.keys()) kept += await program.queuedFor(`ann-${number}@far.example`)
    const statuses = codesOf([...refused.values()])
    const first = [...lab.acknowledged.values()][0] ?? ''
    const held = await program.send('POST', '/operations', { operation: 'hold', selection: { kind: 'ids', ids: [first] } })
    const released = await program.send('POST', '/operations', { operation: 'release', selection: { kind: 'ids', ids: [first] } })
    rmSync(otherFile)
    lab.far.isBusy = false
    const drained = await lab.drained(30_000)
    const repeated = [...refused.keys()]
    refused.clear()
    for (const number of repeated) await submit(number, 1_000)
    return {
      left,
      statuses,
      kept,
      operations: [held.status, released.status],
      drained,
      refusedAgain: refused.size,
      drainedAgain: await lab.drained(30_000),
      exit: (await lab.terminate()).code,
      ...account(lab),
      log: lab.log.filter((line) => /\b(?:error|fatal|panic): /.test(line)).slice(0, 5),
    }
  } finally {
    await lab.close()
  }
}

const SCENARIOS = { deferred: deferredMail, big: bigMessages, http: mailOverHttp }

const report = await SCENARIOS[scenario as keyof typeof SCENARIOS](await portBelowEphemeral())
process.stdout.write(JSON.stringify(report, null, 1))
