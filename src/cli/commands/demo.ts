/**
 * `deferd demo`: runs the real relay in virtual time with two messages, one to a busy server and one to a server that refuses the
 * recipient. Shows the first message as the operator sees it, and the notice that the sender of the second one gets.
 */
import type { Command } from 'commander'
import { liveByName, recordsByName } from '../../presentation/recipient-status.ts'
import { destinationJson } from '../../resources/destination-json.ts'
import { storyJson } from '../../resources/message-story-json.ts'
import { storyText } from '../render/message-details.ts'
import { painted, type Display } from '../render/style.ts'
import { maskControls } from '../../presentation/text.ts'
import { wrapped } from '../render/wrapping.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import type { World } from '../../testkit/world.ts'

const SENDER = 'app@shop.example'
const BUSY = 'ann@isp.example'
const REFUSED = 'bob@firm.example'

/**
 * Sends a message to each recipient, and runs the relay until one message is deferred and the other is returned. Resolves with
 * the queue id of the deferred one.
 */
async function play(world: World): Promise<string> {
  const { createTransport } = await import('nodemailer')
  const transport = createTransport(world.transport())
  world.destination('isp.example').defers('*', '451 4.3.2 Mail system full, try again later')
  world.destination('firm.example').rejects(REFUSED, '550 5.1.1 No such user here')
  const send = async (to: string): Promise<string> => {
    const raw = `From: ${SENDER}\r\nTo: ${to}\r\nSubject: Your invoice\r\n\r\nThe invoice is attached.\r\n`
    const { response } = await transport.sendMail({ envelope: { from: SENDER, to }, raw })
    return / as (\w+)/.exec(response)?.[1] ?? ''
  }
  await send(REFUSED)
  const queueId = await send(BUSY)
  await world.advance('4m')
  return queueId
}

async function queueShow(world: World, queueId: string, display: Display): Promise<string> {
  const { reader, clock } = world
  const story = await reader.details(queueId)
  if (story === undefined) throw new CommandError(EX.software, `the message ${queueId} of the demonstration is missing`)
  const records = recordsByName(await reader.destinationRecords())
  const destinations = new Map(
    world.destinations().map((live) => {
      const row = { name: live.destination, live, record: records.get(live.destination), load: undefined, provider: null }
      return [row.name, destinationJson(row, null, clock.wall)]
    }),
  )
  const shown = storyJson({
    story,
    records,
    live: liveByName(world.destinations()),
    policies: world.relay.policies,
    wall: clock.wall,
    trashLifetime: world.relay.config.trash_lifetime,
    content: true,
  })
  return storyText(shown, { destinations, isRunning: true, clock }, display)
}

/** The part of the notice that people read. */
function noticeText(world: World): readonly string[] {
  const [notice] = world.mailbox(SENDER).notices()
  if (notice === undefined) throw new CommandError(EX.software, 'the notice of the demonstration is missing')
  return maskLines(notice.text)
}

const maskLines = (text: string): readonly string[] => text.trimEnd().split('\n').map(maskControls)

const NEXT: readonly (readonly [command: string, purpose: string])[] = [
  ['start', 'run a relay; its queue is ./deferd-queue'],
  ['simulate schedule', 'times of retries, and what outages cost'],
  ['sink', 'an SMTP server that fails on request'],
]

function nextLines(program: string): readonly string[] {
  const commands = NEXT.map(([command, purpose]) => [`${program} ${command}`, purpose] as const)
  const longest = Math.max(...commands.map(([command]) => command.length))
  return commands.map(([command, purpose]) => `  ${command.padEnd(longest)}  # ${purpose}`)
}

async function demo(shell: Shell): Promise<void> {
  // Loaded on demand, because no other command needs the test kit.
  const { createWorld } = await import('../../testkit/create-world.ts')
  const display = displayOf(shell)
  const bold = (text: string): readonly string[] => wrapped(text, display.width).map((line) => painted(line, 'heading', display))
  await using world = await createWorld({ config: { myhostname: 'relay.example' } })
  const queueId = await play(world)
  const lines = [
    ...bold(
      `${SENDER} sends mail to ${BUSY}, whose server is busy, and to ${REFUSED}, who does not exist. 4 minutes later (virtual time):`,
    ),
    '',
    `$ deferd queue show ${queueId}`,
    (await queueShow(world, queueId, display)).trimEnd(),
    '',
    ...bold(`The notice that ${SENDER} got at once, as people read it:`),
    '',
    ...noticeText(world),
    '',
    ...bold('Next:'),
    ...nextLines(shell.program),
  ]
  await shell.stdout.write(`${lines.join('\n')}\n`)
}

export function addDemo(program: Command, shell: Shell): void {
  program
    .command('demo')
    .description('show a deferred message and a notice, in virtual time')
    .addHelpText('after', '\nThe relay and the remote servers run inside the command. No port is opened and no file is written.')
    .action(() => demo(shell))
}
