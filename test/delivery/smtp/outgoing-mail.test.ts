/** The content of a mail for a next hop, which is stored in chunks of any size. */
import { describe, expect, test } from 'vitest'
import { openChecks } from '../../../src/checks/check-tables.ts'
import { configFrom } from '../../../src/config/load.ts'
import { outgoingMail, type HeaderChanges } from '../../../src/delivery/smtp/outgoing-mail.ts'
import type { LeasedRecipient, Message } from '../../../src/mail/message.ts'
import { Matching } from '../../../src/patterns/matching.ts'
import { headerChecks } from '../../../src/relay/check-rules.ts'
import { GenericMaps } from '../../../src/rewriting/generic.ts'
import { openTables } from '../../../src/rewriting/tables.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

const CONTENT = [
  'Received: from a by b',
  'From: Ann <ann@in.test>',
  'To: bob@in.test, eve@far.test',
  'Subject: ann@in.test',
  ' and more',
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  'Content-Type: text/plain;',
  ' charset=utf-8',
  '',
  'ann@in.test',
  '--b--',
  '',
].join('\r\n')

const MAPPED = CONTENT.replace('Ann <ann@in.test>', 'Ann <ann@us.test>').replace('bob@in.test', 'bob@us.test')

const TABLE = { '@in.test': '@us.test' }

interface Rules {
  readonly maps?: Readonly<Record<string, string>>
  readonly checks?: string
}

function termsOf({ maps = {}, checks }: Rules): HeaderChanges {
  const { config } = configFrom({ smtp_generic_maps: maps, ...(checks === undefined ? {} : { smtp_header_checks: checks }) })
  return {
    generic: GenericMaps.of(config, openTables(config).tables),
    headerChecks: headerChecks(
      config,
      openChecks(config).checks,
      new Events(() => new VirtualClock().wall.now()),
      new Matching(new VirtualClock()),
    ),
  }
}

async function read(content: string, sizes: Iterable<number>, changes: HeaderChanges) {
  const chunks: Uint8Array[] = []
  let rest = content
  for (const size of sizes) {
    chunks.push(new Uint8Array(Buffer.from(rest.slice(0, size))))
    rest = rest.slice(size)
  }
  if (rest !== '') chunks.push(new Uint8Array(Buffer.from(rest)))
  const mail = outgoingMail(
    {
      message: { id: 1, contentId: 1, createdAt: 0, arrivedAt: 0, sender: 'ann@in.test', size: content.length } as unknown as Message,
      recipients: [{ address: 'bob@in.test' } as LeasedRecipient],
    },
    {
      changes,
      signing: null,
      signed: true,
      lineLimit: 0,
      readChunk: async (_content, index) => chunks[index],
      cached: undefined,
    },
  )
  let text = ''
  for (;;) {
    const chunk = await mail.content.next()
    if (chunk.kind === 'unreadable') return { mail, text, failure: chunk }
    text += Buffer.from(chunk.bytes).toString()
    if (chunk.last) return { mail, text }
  }
}

describe('a mail for a next hop', () => {
  test.each([1, 2, 7, 40, 1000])('has mapped addresses in envelope and header, in chunks of %i bytes', async (size) => {
    const { mail, text } = await read(CONTENT, Array(CONTENT.length).fill(size), termsOf({ maps: TABLE }))
    expect(text).toBe(MAPPED)
    expect(mail).toMatchObject({
      message: { sender: 'ann@us.test' },
      recipients: [{ address: 'bob@us.test', orcpt: 'rfc822;bob@in.test' }],
    })
  })

  test('loses nothing of its header or of the fields of its parts by smtp_header_checks, whichever byte a chunk ends with', async () => {
    const checks = 'pcre:{{/^X-None/ IGNORE}}'
    const [checked, mapped] = [termsOf({ checks }), termsOf({ checks, maps: TABLE })]
    for (let at = 1; at < CONTENT.length; at++) {
      expect((await read(CONTENT, [at], checked)).text, `a chunk of ${at} bytes`).toBe(CONTENT)
      expect((await read(CONTENT, [at], mapped)).text, `a chunk of ${at} bytes, mapped`).toBe(MAPPED)
    }
  })

  test('has the fields that smtp_header_checks add as they are, and those that they replace mapped', async () => {
    const checks = 'pcre:{{/^To: / PREPEND X-To: bob@in.test}, {/^From: / REPLACE From: eve@in.test}}'
    const { text } = await read(CONTENT, [], termsOf({ checks, maps: TABLE }))
    expect(text).toBe(MAPPED.replace('To: bob', 'X-To: bob@in.test\r\nTo: bob').replace('Ann <ann@us.test>', 'eve@us.test'))
  })

  test.each(['From: ann@in.test\r\n', ''])('that is %j is read whole', async (content) => {
    expect((await read(content, [3, 3, 3, 3, 3, 3, 3], termsOf({ maps: TABLE }))).text).toBe(content.replace('in.test', 'us.test'))
  })

  test('without a header gets the empty line that ends the header', async () => {
    expect((await read('no header', [3, 3], termsOf({ maps: TABLE }))).text).toBe('\r\nno header')
  })

  test.each(['ann@in.test', 'eve@far.test'])('is unreadable for now when the lookup of %s fails', async (key) => {
    expect((await read(CONTENT, [], termsOf({ maps: { [key]: ',' } }))).failure).toMatchObject({ kind: 'unreadable', lasting: false })
  })
})
