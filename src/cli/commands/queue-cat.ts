/**
 * `deferd queue cat`: a queued message as it is stored. Byte for byte into a pipe or a file; on a terminal without
 * control characters, because the text comes from strangers.
 */
import type { Command } from 'commander'
import { parseQueueId } from '../../mail/queue-id.ts'
import { queueIdOf } from '../../queue/message.ts'
import type { MessageStory, QueueReader } from '../../queue/reader.ts'
import { configOf, subcommand } from '../command.ts'
import { shownSender } from '../message-json.ts'
import { CommandError, EX, type Output, type Shell } from '../shell.ts'
import { harmless, isoTime } from '../text.ts'

/** The story of a message that must exist. */
export function storyOf(reader: QueueReader, id: string, now: number): MessageStory {
  const story = parseQueueId(id) === undefined ? undefined : reader.story(id, now)
  if (story === undefined) throw new CommandError(EX.data, `there is no message ${harmless(id)}, neither in the queue nor in its history`)
  return story
}

export interface Parts {
  readonly envelope: boolean
  readonly header: boolean
  readonly body: boolean
}

const LF = 10
const CR = 13

/** Where the header ends: after the empty line, which is given to the header. Looks at lines across chunks. */
class HeaderEnd {
  /** Nothing but a line end since the last line end. */
  #lineEmpty = true
  #found = false

  /** How many bytes of the chunk belong to the header. */
  take(chunk: Uint8Array): number {
    if (this.#found) return 0
    for (const [at, byte] of chunk.entries()) {
      if (byte === LF) {
        if (this.#lineEmpty) {
          this.#found = true
          return at + 1
        }
        this.#lineEmpty = true
      } else if (byte !== CR) this.#lineEmpty = false
    }
    return chunk.length
  }
}

/** The content, or its header, or its body, chunk by chunk. */
export function* contentOf(reader: QueueReader, story: MessageStory, parts: Pick<Parts, 'header' | 'body'>): Generator<Uint8Array> {
  const end = new HeaderEnd()
  for (let index = 0; ; index++) {
    const chunk = reader.readBody(story.message, index)
    if (chunk === undefined) return
    const split = end.take(chunk)
    if (parts.header && split > 0) yield chunk.subarray(0, split)
    if (parts.body && split < chunk.length) yield chunk.subarray(split)
    if (!parts.body && split < chunk.length) return
  }
}

/** Writes content: raw, or with every control character but the line end masked when a terminal shows it. */
export async function writeContent(output: Output, chunks: Iterable<Uint8Array>): Promise<void> {
  const decoder = new TextDecoder()
  for (const chunk of chunks) {
    if (output.columns === null) await output.write(chunk)
    else await output.write(maskedLines(decoder.decode(chunk, { stream: true })))
  }
}

/** Tabs as the blanks a terminal would show for them. */
const withoutTabs = (line: string): string => line.split('\t').reduce((text, part) => text + ' '.repeat(8 - (text.length % 8)) + part)

const maskedLines = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => harmless(withoutTabs(line)))
    .join('\n')

function envelopeOf({ message, recipients, queue }: MessageStory): string {
  const lines = [
    `queue_id: ${queueIdOf(message)}`,
    `queue_name: ${queue}`,
    `message_size: ${message.size}`,
    `arrival_time: ${isoTime(message.arrivedAt)}`,
    `create_time: ${isoTime(message.createdAt)}`,
    ...(message.envid === undefined ? [] : [`envid: ${message.envid}`]),
    ...(message.ret === undefined ? [] : [`ret: ${message.ret}`]),
    `sender: ${shownSender(message.sender)}`,
    ...recipients.map(
      ({ address, state }) =>
        `${state === 'waiting' || state === 'leased' || state === 'parked' ? 'recipient' : 'done_recipient'}: ${address}`,
    ),
  ]
  return lines.map((line) => `${harmless(line)}\n`).join('')
}

interface CatOptions {
  readonly h?: true
  readonly b?: true
  readonly e?: true
}

async function cat(shell: Shell, id: string, options: CatOptions, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const reader = await shell.openReader(config)
  try {
    const story = storyOf(reader, id, shell.clock.now())
    const all = options.h !== true && options.b !== true && options.e !== true
    if (options.e === true) await shell.stdout.write(envelopeOf(story))
    const parts = { header: all || options.h === true, body: all || options.b === true }
    if (!parts.header && !parts.body) return
    if (reader.readBody(story.message, 0) === undefined) {
      throw new CommandError(EX.data, `the content of ${id} is no longer kept: the message has left the queue`)
    }
    await writeContent(shell.stdout, contentOf(reader, story, parts))
  } finally {
    reader.close()
  }
}

export function addQueueCat(parent: Command, shell: Shell): void {
  subcommand(parent, 'cat <id>', 'print a message as it is stored')
    .helpOption('--help', 'display help for command')
    .option('-e', 'the envelope')
    .option('-h', 'the header')
    .option('-b', 'the body')
    .addHelpText('after', '\nWithout -e, -h or -b: header and body, which is the message.')
    .action((id: string, options: CatOptions, command: Command) => cat(shell, id, options, command))
}
