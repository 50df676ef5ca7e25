/** `deferd queue cat`: prints a queued message. A pipe or file gets the stored bytes; on a terminal, control characters are masked. */
import type { WallView } from '../../system/wall-view.ts'
import type { Command } from 'commander'
import { parseQueueId } from '../../mail/queue-id.ts'
import { messageContent } from '../../queue/content-parts.ts'
import { isLive, queueIdOf } from '../../mail/message.ts'
import type { MessageDetails, QueueReader } from '../../store/queue-reader.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { shownSender } from '../../mail/envelope.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { withReader, type Output, type Shell } from '../shell/shell.ts'
import { maskControls, isoTime } from '../../presentation/text.ts'

/** Reads a message; throws CommandError (65) when the id is unknown. */
export async function storyOf(reader: QueueReader, id: string): Promise<MessageDetails> {
  const story = parseQueueId(id) === undefined ? undefined : await reader.details(id)
  if (story === undefined)
    throw new CommandError(EX.data, `there is no message ${maskControls(id)}, neither in the queue nor in its history`)
  return story
}

export interface ContentParts {
  readonly envelope: boolean
  readonly header: boolean
  readonly body: boolean
}

/** Writes content unchanged to a pipe. On a terminal, masks every control character except the line end. */
export async function writeContent(output: Output, chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
  const decoder = new TextDecoder()
  for await (const chunk of chunks) {
    if (output.columns === null) await output.write(chunk)
    else await output.write(maskedLines(decoder.decode(chunk, { stream: true })))
  }
}

/** Replaces tabs with the spaces that a terminal would show. */
const withoutTabs = (line: string): string => line.split('\t').reduce((text, part) => text + ' '.repeat(8 - (text.length % 8)) + part)

const maskedLines = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => maskControls(withoutTabs(line)))
    .join('\n')

function envelopeOf({ message, recipients, queue }: MessageDetails, wall: WallView): string {
  const lines = [
    `queue_id: ${queueIdOf(message)}`,
    `queue_name: ${queue}`,
    `message_size: ${message.size}`,
    `arrival_time: ${isoTime(wall.of(message.arrivedAt))}`,
    `create_time: ${isoTime(wall.of(message.createdAt))}`,
    ...(message.envid === undefined ? [] : [`envid: ${message.envid}`]),
    ...(message.ret === undefined ? [] : [`ret: ${message.ret}`]),
    `sender: ${shownSender(message.sender)}`,
    ...recipients.map((one) => `${isLive(one) ? 'recipient' : 'done_recipient'}: ${one.address}`),
  ]
  return lines.map((line) => `${maskControls(line)}\n`).join('')
}

interface CatOptions {
  readonly h?: true
  readonly b?: true
  readonly e?: true
}

async function cat(shell: Shell, id: string, options: CatOptions, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withReader(shell, config, async ({ reader, clock }) => {
    const story = await storyOf(reader, id)
    const all = options.h !== true && options.b !== true && options.e !== true
    if (options.e === true) await shell.stdout.write(envelopeOf(story, clock.wall))
    const parts = { header: all || options.h === true, body: all || options.b === true }
    if (!parts.header && !parts.body) return
    // The content may be removed from PostgreSQL after its message was read.
    if (story.queue === 'gone' || (await reader.readChunk(story.message, 0)) === undefined) {
      throw new CommandError(EX.data, `the content of ${id} is no longer stored: the message has left the queue`)
    }
    await writeContent(shell.stdout, messageContent(reader, story, parts))
  })
}

export function addQueueCat(parent: Command, shell: Shell): void {
  subcommand(parent, 'cat <id>', 'print a message as it is stored')
    .helpOption('--help', 'display help for command')
    .option('-e', 'the envelope')
    .option('-h', 'the header')
    .option('-b', 'the body')
    .addHelpText('after', '\nWithout -e, -h or -b: header and body.')
    .action((id: string, options: CatOptions, command: Command) => cat(shell, id, options, command))
}
