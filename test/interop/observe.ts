/** Observations of a relay in a situation, in a form in which those of two relays can be compared. */
import type { ReceivedMail } from '../../src/testkit/remote/remote-events.ts'
import { Client, burst, play } from './dialogue.ts'
import type { BurstSituation, DialogueSituation, MailSituation, SendmailSituation } from './situations.ts'
import type { System } from './systems.ts'

const QUEUE_ID = /\b[0-9B-DF-HJ-NP-TV-Zb-df-hj-np-tv-z]{9,}z[0-9B-DF-HJ-NP-TV-Zb-df-hj-np-tv-z]+\b/g

const normalize = (text: string): string => text.replaceAll(QUEUE_ID, 'ID').replaceAll(/127\.0\.0\.1\]:\d+/g, '127.0.0.1]:PORT')

export const playDialogue = async ({ port }: System, { lines, quiet, from }: DialogueSituation): Promise<readonly string[]> =>
  (await play(port, lines, { quiet, from })).map(normalize)

export const playBurst = async ({ port }: System, { bytes }: BurstSituation): Promise<readonly string[]> =>
  (await burst(port, bytes)).map(normalize)

/** The domain of a situation's recipients. */
const domainOf = (n: number): string => `s${n}.test`
/** Completes `r@` at the end of an address or before a parameter. */
const complete = (text: string, domain: string): string => text.replaceAll(/@(?=$|[ ,>\n])/g, `@${domain}`)

export async function submit({ port }: System, situation: MailSituation, n: number): Promise<readonly string[]> {
  const { sender = 'app@client.test', parameters = '', rcpt = ['r@'], content, chunk, from = '127.0.0.1' } = situation
  const client = await Client.open(port, from)
  const replies: string[] = []
  const ask = async (text: string): Promise<void> => {
    client.send(text)
    replies.push(normalize(await client.reply()))
  }
  try {
    await client.reply()
    await ask('EHLO client.example\r\n')
    await ask(`MAIL FROM:<${sender}>${parameters}\r\n`)
    for (const one of rcpt) {
      const [path = '', ...rest] = /^("[^"]*"[^ ]*|[^ ]*)(.*)$/.exec(complete(one, domainOf(n)))?.slice(1) ?? []
      await ask(`RCPT TO:<${path}>${rest.join('')}\r\n`)
    }
    if (chunk === undefined) {
      await ask('DATA\r\n')
      await ask(`${content}.\r\n`)
    } else {
      for (let at = 0; at < content.length; at += chunk) {
        const piece = content.slice(at, at + chunk)
        await ask(`BDAT ${piece.length}${at + chunk < content.length ? '' : ' LAST'}\r\n${piece}`)
      }
    }
    return replies.slice(1)
  } finally {
    client.close()
  }
}

/** True when the log has a result of each recipient of a situation. */
export function isTried(system: System, { rcpt = ['r@'] }: MailSituation, n: number): boolean {
  const results = system.log().filter((line) => line.includes(' status='))
  return rcpt.every((one) => results.some((line) => line.includes(`: to=<${complete(one, domainOf(n))}>, `)))
}

export async function submitLocally(system: System, { args, input }: SendmailSituation, n: number): Promise<readonly string[]> {
  const domain = domainOf(n)
  return [
    `exit code ${await system.sendmail(
      args.map((arg) => complete(arg, domain)),
      complete(input, domain),
    )}`,
  ]
}

/** Queue id of a line about a message; empty for other lines. */
const queueIdOf = (line: string): string => /^[\w-]+: (\w+): /.exec(line)?.[1] ?? ''

/** Queue ids of the messages in a log that entered the active queue, were not removed, and have fewer results than recipients. */
function inDelivery(lines: readonly string[]): readonly string[] {
  const results = new Map(lines.flatMap((line) => (/^qmgr: \w+: removed$/.test(line) ? [[queueIdOf(line), Infinity] as const] : [])))
  for (const line of lines) {
    if (!/^[\w-]+: \w+: to=<.* status=/.test(line)) continue
    results.set(queueIdOf(line), (results.get(queueIdOf(line)) ?? 0) + 1)
  }
  return lines.flatMap((line) => {
    const [, recipients] = /^qmgr: \w+: from=.*, nrcpt=(\d+) \(queue active\)$/.exec(line) ?? []
    return Number(recipients) > (results.get(queueIdOf(line)) ?? 0) ? [queueIdOf(line)] : []
  })
}

/** Time after which a message that is still in delivery is an error, in ms. */
const PATIENCE = 60_000

/** Waits until no message is in delivery and neither system has logged anything for `quiet` ms. */
export async function settled(systems: readonly System[], quiet: number): Promise<void> {
  const begun = Date.now()
  let last = -1
  for (let since = begun; Date.now() - since < quiet;) {
    const logs = systems.map((system) => system.log())
    const busy = logs.flatMap(inDelivery)
    const count = logs.flat().length + systems.reduce((sum, { received }) => sum + received.length, 0)
    if (count !== last || busy.length > 0) since = Date.now()
    last = count
    if (since - begun > PATIENCE) throw new Error(`not settled after ${PATIENCE} ms; in delivery: ${busy.join(', ')}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Fields whose content is different in each system by their nature. */
const GENERATED = /^(?:Received|(?:Resent-)?Message-Id|(?:Resent-)?Date):/i

/** A delivered content. Fields with generated values are left empty unless the value was submitted. */
function contentOf(mail: ReceivedMail, submitted: string): string {
  const text = mail.content.toString('latin1').replaceAll('\r\n', '\n')
  const end = text.indexOf('\n\n')
  const head = end < 0 ? text : text.slice(0, end + 1)
  const fields = head
    .split(/\n(?![ \t])/)
    .map((field) => (GENERATED.test(field) && !submitted.includes(field) ? `${field.split(':', 1)[0]}: …` : field))
  return fields.join('\n') + text.slice(head.length)
}

/** Deliveries of a situation: envelope with parameters, and content. Notices are not included. */
export function deliveries({ received }: System, n: number, submitted: string): readonly string[] {
  const domain = domainOf(n)
  return received
    .filter(({ recipients }) => recipients.some((one) => one.toLowerCase().endsWith(`@${domain}`)))
    .map((mail) => {
      const parameters = [mail.mailParameters, ...mail.rcptParameters]
        .map((text) =>
          text
            .replace(/SIZE=\d+ ?/, '')
            .trim()
            .split(' ')
            .toSorted()
            .join(' '),
        )
        .join(' | ')
      return `from <${mail.sender}> to ${mail.recipients.map((one) => `<${one}>`).join(' ')} ${parameters}\n${contentOf(mail, submitted.replaceAll('\r\n', '\n'))}`
    })
    .toSorted()
}

/** Sends each piece after the reply to the one before, from an own address, and closes the connection. */
export async function playCut({ port }: System, pieces: readonly string[], from: string): Promise<void> {
  const client = await Client.open(port, from)
  await client.reply()
  for (const piece of pieces) {
    client.send(piece)
    if (piece.endsWith('\n') && !/^BDAT 9|^Subject: x\r\n$/.test(piece)) await client.reply()
  }
  client.close()
}

/** Log lines of the server about a client. */
export const sessionLines = (system: System, client: string): readonly string[] =>
  system.log().flatMap((line) => (line.startsWith('smtpd: ') && line.includes(`[${client}]`) ? normalize(line) : []))

const LOG_NOISE =
  /^(?:smtpd: (?:connect|disconnect|lost)|postfix-script|master:|postlog|scache|anvil|qmgr: ID: from=<[^>]*>, size=\d+, nrcpt=\d+ \(queue active\)$)/

/** Log lines of the messages of a situation, without times, sizes and generated values, in sorted order. */
export function facts(system: System, n: number): readonly string[] {
  const domain = domainOf(n)
  const lines = system.log()
  const ids = new Set(
    lines.flatMap((line) => (line.toLowerCase().includes(`@${domain}>`) ? (/^[\w-]+: (\w+): to=/.exec(line)?.[1] ?? []) : [])),
  )
  return lines
    .filter((line) => ids.has(queueIdOf(line)))
    .map((line) =>
      normalize(line)
        .replace(/, delay=[^,]*, delays=[^,]*/, '')
        .replace(/, conn_use=\d+/, '')
        .replace(/size=\d+/, 'size=N')
        .replace(/message-id=<[\w.]+@relay\.example>/, 'message-id=…')
        .replace(/ queued as \w+/g, ' queued as ID'),
    )
    .filter((line) => !LOG_NOISE.test(line))
    .toSorted()
}
