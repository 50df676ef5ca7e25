/** Checks of content: deferd and Postfix get the same generated mail with the same tables, and answer, log and send the same. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import type { ReceivedMail } from '../../src/testkit/remote/remote-events.ts'
import { reasonToSkip } from '../support/required.ts'
import { CheckedInputs, type CheckedInput } from './checks-inputs.ts'
import { CHECKS, type ChecksSituation } from './checks-situations.ts'
import { Client } from './dialogue.ts'
import { settled } from './observe.ts'
import { startPair, type Pair, type PairOptions, type System } from './systems.ts'

const WIDTH = 8

const reason = reasonToSkip('interop', await postfixIsMissing())

/** Describes tests that send generated mail through both systems, one test for each of the situations. */
export function compareChecks(names: readonly string[], inputs: number): void {
  describe.skipIf(reason !== null)(`checks by deferd and Postfix${reason === null ? '' : ` (not run: ${reason})`}`, () => {
    test.each(names)(
      `%s: ${inputs} messages have equal replies, log lines and deliveries`,
      async (name) => {
        const situation = CHECKS[name]
        if (situation === undefined) throw new Error(`no situation is called ${name}`)
        const folder = mkdtempSync('/tmp/deferd-checks-')
        chmodSync(folder, 0o755)
        try {
          await compared(name, inputs, optionsOf(situation, folder))
        } finally {
          rmSync(folder, { recursive: true })
        }
      },
      180_000,
    )
  })
}

/** The settings of both systems, with the tables in files. */
function optionsOf({ tables, settings = {}, asPcre = false }: ChecksSituation, folder: string): PairOptions {
  const paths = Object.entries(tables).map(([name, lines]) => {
    const path = join(folder, name)
    writeFileSync(path, Buffer.from(`${lines.join('\n')}\n`, 'latin1'))
    return [name, path] as const
  })
  const typed = (type: string) => Object.fromEntries(paths.map(([name, path]) => [name, `${type}:${path}`]))
  return { settings: { ...settings, ...typed('regexp') }, ...(asPcre ? { ownSettings: typed('pcre') } : {}) }
}

async function compared(name: string, inputs: number, options: PairOptions): Promise<void> {
  const pair = await startPair(options)
  try {
    await compare(pair, name, inputs)
  } finally {
    await pair.stop()
  }
}

async function compare(pair: Pair, name: string, inputs: number): Promise<void> {
  const generator = new CheckedInputs(Object.keys(CHECKS).indexOf(name) + 1)
  const mails = Array.from({ length: inputs }, (_, n) => generator.input(n))
  const replies: (readonly string[])[] = []
  const left = mails.entries()
  await Promise.all(
    Array.from({ length: WIDTH }, async () => {
      for (const [n, input] of left) replies[n] = await Promise.all([submitted(pair.deferd, input), submitted(pair.postfix, input)])
    }),
  )
  await settled([pair.deferd, pair.postfix], 1000)
  const [ours, theirs] = [deliveries(pair.deferd, mails), deliveries(pair.postfix, mails)]
  const [ourLog, theirLog] = [actions(pair.deferd), actions(pair.postfix)]
  const different = mails.flatMap((input, n) => {
    const [deferd, postfix] = [
      [replies[n]?.[0], ours.get(n), ourLog.get(input.sender)],
      [replies[n]?.[1], theirs.get(n), theirLog.get(input.sender)],
    ]
    return JSON.stringify(deferd) === JSON.stringify(postfix) ? [] : [{ input, deferd, postfix }]
  })
  expect(different.slice(0, 3)).toEqual([])
  expect(ourLog.get('')).toEqual(theirLog.get(''))
  expect(theirs.size).toBeGreaterThan(inputs / 4)
  expect([...theirLog.values()].flat().length).toBeGreaterThan(inputs / 10)
}

/** Sends a message. Returns the reply to its content. */
async function submitted({ port }: System, { sender, recipients, content }: CheckedInput): Promise<string> {
  const client = await Client.open(port, '127.0.0.1')
  const stuffed = content.replaceAll(/^\./gm, '..')
  const lines = ['EHLO client.example', `MAIL FROM:<${sender}>`, ...recipients.map((one) => `RCPT TO:<${one}>`), 'DATA', `${stuffed}.`]
  try {
    let reply = await client.reply()
    for (const line of lines) {
      client.send(`${line}\r\n`)
      reply = await client.reply()
    }
    return reply.replace(/ queued as \w+/, '')
  } finally {
    client.close()
  }
}

/** Deliveries by the number of the message. */
function deliveries({ received }: System, mails: readonly CheckedInput[]): ReadonlyMap<number, readonly string[]> {
  const byNumber = Map.groupBy(received, (mail) => Number(/^s(\d+)@/.exec(mail.sender)?.[1] ?? -1))
  return new Map([...byNumber].map(([n, of]) => [n, of.map((mail) => deliveryOf(mail, mails[n]?.content ?? '')).toSorted()]))
}

/** Fields whose content is different in each system by their nature, unless it was submitted. */
const GENERATED = /^(?:Received|Message-Id|Date):/i

function deliveryOf({ recipients, rcptParameters, content }: ReceivedMail, given: string): string {
  const text = content.toString('latin1')
  const end = text.indexOf('\r\n\r\n')
  const fields = text.slice(0, end < 0 ? text.length : end).split(/\r\n(?![ \t])/)
  const known = fields.map((field) => (GENERATED.test(field) && !given.includes(field) ? `${field.split(':', 1)[0]}: …` : field))
  const to = recipients.map(
    (address, n) => `${address} ${/ORCPT=(?!rfc822;(?:ann@a|bob@b|cy@c)\.test)\S*/.exec(rcptParameters[n] ?? '')?.[0] ?? ''}`,
  )
  return `${to.toSorted().join(', ')}\n${known.join('\r\n')}${end < 0 ? '' : text.slice(end)}`
}

const ACTION =
  /^(cleanup|smtp|smtpd): \w+: ((?:reject|warning|info|replace|prepend|hold|redirect|discard|strip|pass): (?:header|body|END-OF-MESSAGE) .*)/

/** Log lines of actions by sender; those of deliveries, which name none, by the empty sender. */
function actions(system: System): ReadonlyMap<string, readonly string[]> {
  const lines = system.log().flatMap((line) => {
    const [, program, text] = ACTION.exec(line) ?? []
    return program === undefined || text === undefined ? [] : [`${program}: ${normalized(text)}`]
  })
  return new Map(
    [...Map.groupBy(lines, (line) => /; from=<([^>]*)>/.exec(line)?.[1] ?? '')].map(([sender, of]) => [
      sender,
      sender === '' ? of.toSorted() : of,
    ]),
  )
}

/** A log line without the name of the client, queue ids and dates. */
const normalized = (text: string): string =>
  text.replace(/ from \w+\[127\.0\.0\.1\];/, ' from CLIENT;').replace(/^(\w+: header Received: ).*?( from CLIENT)/, '$1…$2')
