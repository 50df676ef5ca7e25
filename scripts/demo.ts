/**
 * The tour: a relay, and a far side that greylists Ann, refuses Bob and is down for Eve. One real mail goes to all
 * three; you see the queue as an operator sees it while it changes, and at the end the notices that the sender got.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { loadConfig } from '../src/config/load.ts'
import { startDaemon } from '../src/daemon/daemon.ts'
import { systemClock } from '../src/system/clock.ts'
import { SystemNet } from '../src/system/net.ts'
import { systemRandom } from '../src/system/random.ts'
import { Events } from '../src/telemetry/events.ts'
import type { ReceivedMail } from '../src/testkit/far-side/events.ts'
import { FarSide } from '../src/testkit/far-side/far-side.ts'
import { readScript } from '../src/testkit/far-side/script.ts'

const deferd = join(import.meta.dirname, '../bin/deferd.js')
const folder = mkdtempSync(join(tmpdir(), 'deferd-demo-'))
const configFile = join(folder, 'deferd.toml')

const say = (text: string) => process.stdout.write(`\n\u001b[1m${text}\u001b[0m\n`)
const show = async (...args: string[]) => {
  process.stdout.write(`$ deferd ${args.join(' ')}\n`)
  await once(spawn(process.execPath, [deferd, ...args, '--config', configFile], { stdio: 'inherit' }), 'exit')
}

const net = new SystemNet()
const arrived: ReceivedMail[] = []
const script = readScript(
  `[rule.greylisting]
recipient = "ann@far.example"
greylist = "2s"

[rule.refusal]
recipient = "bob@far.example"
at = "rcpt"
reply = "550 5.1.1 no such user here"
`,
  'demo',
)
const far = new FarSide({ clock: systemClock, random: systemRandom, script, keep: (mail) => void arrived.push(mail) })
const mailbox = (address: string) => arrived.filter(({ recipients }) => recipients.includes(address))
const farPort = await net.listen({ address: '127.0.0.1', port: 0 }, (socket) => void far.accept(socket, 'mx.far.example'))
const closedPort = await net.listen({ address: '127.0.0.1', port: 0 }, (socket) => void socket.destroy())
await closedPort.close()

writeFileSync(
  configFile,
  `queue_directory        = "${join(folder, 'queue')}"
smtpd_listen           = "127.0.0.1:0"
myhostname             = "relay.example"
minimal_backoff_time   = "1s"
maximal_backoff_time   = "4s"
maximal_queue_lifetime = "10s"

[transport_maps]
"down.example" = "smtp:[127.0.0.1]:${closedPort.port}"
"*"            = "smtp:[127.0.0.1]:${farPort.port}"
`,
)
const loaded = loadConfig({ file: configFile, env: {}, overrides: [], uid: 1000, calledAs: 'deferd' })
const daemon = await startDaemon({ loaded, events: new Events(() => systemClock.now()) })
const port = daemon.listeners[0]?.port ?? 0

try {
  say(`A relay takes mail on 127.0.0.1:${port}. Waits are 1, 2, 4, 4… s here, and mail lives for 10 s.`)
  const ann = 'ann@far.example'
  const bob = 'bob@far.example'
  const eve = 'eve@down.example'
  const transport = createTransport({ host: '127.0.0.1', port, ignoreTLS: true })
  const sent = await transport.sendMail({
    from: 'app@us.example',
    to: [ann, bob, eve],
    subject: 'Hello, all three',
    text: 'It is only me.',
  })
  transport.close()
  say(`One mail to Ann (greylisted for 2 s), Bob (refused) and Eve (her server is down): ${sent.response}`)
  const queueId = / as (\w+)/.exec(sent.response)?.[1] ?? ''

  await pause(700)
  say('Bob’s refusal was told at once. Ann and Eve wait, each with her own next attempt:')
  await show('queue', 'list')

  await pause(3_000)
  say(
    `${mailbox(ann).length === 1 ? 'Ann’s mail has arrived' : 'Ann’s mail is about to arrive'}. Why is Eve’s still here, and what happens next?`,
  )
  await show('queue', 'show', queueId)

  await pause(7_500)
  say('The ten seconds are over. The queue:')
  await show('queue', 'list')

  say('And what MAILER-DAEMON wrote to app@us.example, who did nothing but wait:')
  for (const { content } of mailbox('app@us.example')) {
    process.stdout.write(`\n${'─'.repeat(100)}\n${content.toString('utf8').replaceAll('\r\n', '\n')}`)
  }
} finally {
  await daemon.stop()
  far.close()
  await farPort.close()
  rmSync(folder, { recursive: true, force: true })
}
