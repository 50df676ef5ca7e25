/** `postcat -q` with Postfix's output (postcat(1)): prints a queued message with its envelope. */
import { parseQueueId } from '../../mail/queue-id.ts'
import { isLive, queueIdOf } from '../../mail/message.ts'
import type { MessageDetails } from '../../store/queue-reader.ts'
import { civilTime } from '../../mail/mail-date.ts'
import type { Clock, WallTime } from '../../system/clock.ts'
import { getopt } from './getopt.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { withReader, type Shell } from '../shell/shell.ts'
import { differingOrcpt } from '../../mail/envelope.ts'
import { ctime, maskControls } from '../../presentation/text.ts'
import { configFor } from './postqueue.ts'
import { messageContent } from '../../queue/content-parts.ts'
import { writeContent } from '../commands/queue/queue-cat.ts'

/** Exit code of postcat(1) for every error. */
const FATAL = 1

function envelope({ message, recipients, warnings }: MessageDetails, clock: Clock): string {
  const numbers = [message.size, 0, recipients.length, 0, message.size, message.smtputf8 ? 1 : 0]
  const time = (at: WallTime) => `${ctime(at, clock)} ${civilTime(at, clock.zone(at).offset).year}`
  const lines = [
    `message_size: ${numbers.map((number) => String(number).padStart(15)).join(' ')}`,
    `message_arrival_time: ${time(clock.wall.of(message.arrivedAt))}`,
    `create_time: ${time(clock.wall.of(message.createdAt))}`,
    ...(message.bodyType === undefined ? [] : [`named_attribute: encoding=${message.bodyType}`]),
    ...(message.envid === undefined ? [] : [`named_attribute: envelope_id=${message.envid}`]),
    ...(message.ret === undefined ? [] : [`named_attribute: ret_flags=${message.ret === 'full' ? 1 : 2}`]),
    ...(warnings > 0 ? [`named_attribute: delay_warnings=${warnings}`] : []),
    `sender: ${message.sender}`,
    ...recipients.flatMap((recipient) => [
      ...(recipient.orcpt === undefined ? [] : [`named_attribute: dsn_orig_rcpt=${recipient.orcpt}`]),
      `original_recipient: ${differingOrcpt(recipient) ?? recipient.address}`,
      `${isLive(recipient) ? 'recipient' : 'done_recipient'}: ${recipient.address}`,
    ]),
  ]
  return lines.map((line) => `${maskControls(line)}\n`).join('')
}

/** Removes the CR of line ends, because Postfix stores lines without it. */
async function* withoutCarriageReturns(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const CR = 13
  const LF = 10
  let held = false
  for await (const chunk of chunks) {
    const kept: number[] = []
    for (const byte of chunk) {
      if (held && byte !== LF) kept.push(CR)
      held = byte === CR
      if (!held) kept.push(byte)
    }
    yield Uint8Array.from(kept)
  }
  if (held) yield Uint8Array.of(CR)
}

async function print(shell: Shell, id: string, config: Parameters<Shell['openReader']>[0], chosen: ReadonlySet<string>): Promise<void> {
  await withReader(shell, config, async ({ reader, clock }) => {
    const story = parseQueueId(id) === undefined ? undefined : await reader.details(id)
    if (story === undefined || story.queue === 'gone' || story.queue === 'trash') {
      throw new CommandError(FATAL, `postcat: fatal: open queue file ${maskControls(id)}: No such file or directory`)
    }
    const name = `${story.queue}/${queueIdOf(story.message)}`
    const all = chosen.size === 0
    const bare = !all && !chosen.has('e')
    const say = (title: string) => (bare ? Promise.resolve() : shell.stdout.write(`*** ${title} ${name} ***\n`))
    if (all || chosen.has('e')) {
      await say('ENVELOPE RECORDS')
      await shell.stdout.write(envelope(story, clock))
    }
    const parts = { header: all || chosen.has('h'), body: all || chosen.has('b') }
    if (parts.header || parts.body) {
      await say('MESSAGE CONTENTS')
      await writeContent(shell.stdout, withoutCarriageReturns(messageContent(reader, story, parts)))
    }
    if (all || chosen.has('e')) {
      await say('HEADER EXTRACTED')
      await say('MESSAGE FILE END')
    }
  })
}

export async function postcat(shell: Shell, args: readonly string[]): Promise<void> {
  const { options, operands } = getopt('postcat', args, 'bc:defho:qv')
  if (!options.some(({ name }) => name === 'q') || operands.length === 0) {
    throw new CommandError(EX.usage, 'usage: postcat [-beh] -q queue_id ... (and -c FILE, -o name=value)')
  }
  const { config } = await configFor(shell, 'postcat', options)
  const chosen = new Set(options.map(({ name }) => name).filter((name) => 'beh'.includes(name)))
  for (const id of operands) await print(shell, id, config, chosen)
}
