/** `deferd queue cat`: prints a queued message. A pipe or file gets the stored bytes; on a terminal, control characters are masked. */
import type { Command } from 'commander'
import { messageContent } from '../../../queue/content-parts.ts'
import { absentContent } from '../../../queries/absent-content.ts'
import type { QueueReader } from '../../../store/queue-reader.ts'
import type { Clock } from '../../../system/clock.ts'
import { configOf, subcommand } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { queryOf, segment } from '../../queue-client/api-connection.ts'
import { detailsOf, storyFrom } from '../../queue-client/shown-message.ts'
import type { StoryJson } from '../../../resources/message-story-json.ts'
import { isLive, queueOf } from '../../render/message-details.ts'
import { withSource, type Output, type Shell } from '../../shell/shell.ts'
import { instantOf, maskControls, isoTime } from '../../../presentation/text.ts'

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

function envelopeOf(story: StoryJson): string {
  const { queue_id: id, message_size: size, received_time: received, create_time: created, envid, ret } = story
  const lines = [
    `queue_id: ${id}`,
    `queue_name: ${queueOf(story)}`,
    `message_size: ${size}`,
    `arrival_time: ${isoTime(instantOf(received))}`,
    `create_time: ${isoTime(instantOf(created))}`,
    ...(envid === null ? [] : [`envid: ${envid}`]),
    ...(ret === null ? [] : [`ret: ${ret}`]),
    `sender: ${story.sender}`,
    ...story.recipients.map((one) => `${isLive(one) ? 'recipient' : 'done_recipient'}: ${one.address}`),
  ]
  return lines.map((line) => `${maskControls(line)}\n`).join('')
}

interface CatOptions {
  readonly h?: true
  readonly b?: true
  readonly e?: true
}

/** The chosen parts of the content of a message in the queue. */
async function contentIn(
  { reader, clock }: { readonly reader: QueueReader; readonly clock: Clock },
  id: string,
  parts: Omit<ContentParts, 'envelope'>,
): Promise<AsyncIterable<Uint8Array>> {
  const story = await detailsOf(reader, id)
  // The content may be removed from PostgreSQL after its message was read.
  if (story.queue === 'gone' || (await reader.readChunk(story.message, 0)) === undefined)
    throw new CommandError(EX.data, (await absentContent(reader, story.message, { queueId: id, wall: clock.wall })).detail)
  return messageContent(reader, story, parts)
}

async function cat(shell: Shell, id: string, options: CatOptions, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const all = options.h !== true && options.b !== true && options.e !== true
    if (options.e === true) await shell.stdout.write(envelopeOf(await storyFrom(source, id, { config, live: () => Promise.resolve(null) })))
    const parts = { header: all || options.h === true, body: all || options.b === true }
    if (!parts.header && !parts.body) return
    const part = parts.header && parts.body ? 'all' : parts.header ? 'header' : 'body'
    const content =
      source.api === null
        ? await contentIn(source, id, parts)
        : await source.api.content(`/messages/${segment(id)}/content${queryOf({ part })}`)
    await writeContent(shell.stdout, content)
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
