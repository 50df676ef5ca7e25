/** The header of a content that is read in chunks of any size. */
import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { genericMail } from '../../../src/delivery/smtp/generic-mail.ts'
import type { ContentRead } from '../../../src/delivery/smtp/message-content.ts'
import type { LeasedRecipient, Message } from '../../../src/mail/message.ts'
import { GenericMaps } from '../../../src/rewriting/generic.ts'
import { openTables } from '../../../src/rewriting/tables.ts'

const CONTENT = [
  'Received: from a by b',
  'From: Ann <ann@in.test>',
  'To: bob@in.test, eve@far.test',
  'Subject: ann@in.test',
  '',
  'ann@in.test',
  'end',
  '',
].join('\r\n')

const MAPPED = CONTENT.replace('Ann <ann@in.test>', 'Ann <ann@us.test>').replace('bob@in.test', 'bob@us.test')

async function read(content: string, size: number, table: Readonly<Record<string, string>>) {
  const { config } = configFrom({ smtp_generic_maps: table })
  const maps = GenericMaps.of(config, openTables(config).tables)
  if (maps === null) throw new Error('no map is set')
  const pieces = content.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? ['']
  const chunks = pieces.map((piece, i): ContentRead => ({ kind: 'chunk', bytes: Buffer.from(piece), last: i === pieces.length - 1 }))
  const source = { next: async () => chunks.shift() as ContentRead }
  const mail = genericMail(
    { message: { sender: 'ann@in.test' } as Message, recipients: [{ address: 'bob@in.test' } as LeasedRecipient], content: source },
    maps,
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
  const table = { '@in.test': '@us.test' }

  test.each([1, 2, 7, 40, 1000])('has mapped addresses in envelope and header, in chunks of %i bytes', async (size) => {
    const { mail, text } = await read(CONTENT, size, table)
    expect(text).toBe(MAPPED)
    expect(mail).toMatchObject({
      message: { sender: 'ann@us.test' },
      recipients: [{ address: 'bob@us.test', orcpt: 'rfc822;bob@in.test' }],
    })
  })

  test.each(['From: ann@in.test\r\n', 'no header', ''])('that is %j is read whole', async (content) => {
    expect((await read(content, 3, table)).text).toBe(content.replace('in.test', 'us.test'))
  })

  test.each(['ann@in.test', 'eve@far.test'])('is unreadable for now when the lookup of %s fails', async (key) => {
    expect((await read(CONTENT, 1000, { [key]: ',' })).failure).toMatchObject({ kind: 'unreadable', lasting: false })
  })
})
