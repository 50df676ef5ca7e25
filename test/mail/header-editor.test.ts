import { describe, expect, test } from 'vitest'
import { HeaderEditor, type HeaderRules } from '../../src/mail/header-editor.ts'
import { threadTime } from '../support/thread-time.ts'
import { segmentations } from '../support/segments.ts'

const RULES: HeaderRules = {
  dropped: new Set(['bcc']),
  fieldLimit: 102_400,
  readsTexts: true,
  completion: { origin: 'us.example', parent: null },
}

function edit(content: string, rules: Partial<HeaderRules> = {}, packets: readonly Buffer[] = [Buffer.from(content, 'latin1')]) {
  const out: Buffer[] = []
  const editor = new HeaderEditor({ ...RULES, ...rules }, (piece) => out.push(Buffer.from(piece)))
  let body: ReturnType<HeaderEditor['end']> | undefined
  const rest: Buffer[] = []
  for (const packet of packets) {
    if (body === undefined) body = editor.write(packet)
    else rest.push(packet)
  }
  body ??= editor.end()
  return {
    header: Buffer.concat(out).toString('latin1'),
    body: Buffer.concat([body.rest, ...rest]).toString('latin1'),
    separated: body.separated,
    names: [...editor.names],
    hops: editor.hops,
    messageId: editor.messageId,
  }
}

const CONTENTS = [
  'Received: by a\r\n\tfor b\r\nTo: ann, bob@c.example\r\nBcc: eve\r\nSubject : x \r\n\r\nBcc: body\r\n',
  'From x Fri Nov 20\r\n>From y\r\nMessage-Id:\r\n <a@b>\r\nno field\r\n',
  'Subject: only a header\r\n',
  '',
  '\r\nbody\r\n',
  ' folded\r\nA: b\r\n',
  `X-Long: ${'y'.repeat(500)}\r\n ${'z'.repeat(500)}\r\n a\r\nA: b\r\n\r\nbody`,
  `X: ${'y'.repeat(2500)}\r\nA: b\r\n\r\nbody`,
  `A: b\r\n${'y'.repeat(3000)}\r\n: z\r\n`,
  'A: b',
]

test.each(CONTENTS.map((content) => [content] as const))('edits %j alike at any segmentation', (content) => {
  const whole = edit(content, { fieldLimit: 600 })
  for (const { packets } of segmentations(Buffer.from(content, 'latin1'))) {
    expect(edit(content, { fieldLimit: 600 }, packets)).toEqual(whole)
  }
})

describe('a header', () => {
  test.each([
    ['Subject: voil\u00e0', 'Subject: voil\u00e0'],
    ['To: (\u00e0 la) ann', 'To: ann@us.example (\u00e0 la)'],
  ])('keeps the UTF-8 octet 0xA0 of %j', (given, expected) => {
    const octets = (text: string): string => Buffer.from(`${text}\r\n`).toString('latin1')
    expect(edit(`${octets(given)}\r\n`).header).toBe(octets(expected))
  })

  test('is passed on without removed fields, and the rest is the body', () => {
    expect(edit(CONTENTS[0] ?? '')).toEqual({
      header: 'Received: by a\r\n\tfor b\r\nTo: ann@us.example, bob@c.example\r\nSubject: x \r\n',
      body: '\r\nBcc: body\r\n',
      separated: true,
      names: ['received', 'to', 'bcc', 'subject'],
      hops: 1,
      messageId: undefined,
    })
  })

  test('ends at a line that is no field; lines of an mbox file before it are renamed', () => {
    expect(edit(CONTENTS[1] ?? '')).toMatchObject({
      header: 'X-Mailbox-Line: From x Fri Nov 20\r\nX-Mailbox-Line: >From y\r\nMessage-Id:\r\n <a@b>\r\n',
      body: 'no field\r\n',
      separated: false,
      messageId: '<a@b>',
    })
  })

  test('has fields of any number, each up to the limit', () => {
    const field = `X-Field: ${'x'.repeat(900)}\r\n`
    expect(edit(`${field.repeat(300)}\r\n`).header).toBe(field.repeat(300))
    const long = `X-Long: ${'y'.repeat(990)}${`\r\n ${'y'.repeat(990)}`.repeat(200)}\r\nSubject: x\r\n`
    const { header } = edit(`${long}\r\n`)
    expect(header).toHaveLength(10 + 990 + 102 * 993 + 'Subject: x\r\n'.length)
    expect(header).toMatch(/y\r\nSubject: x\r\n$/)
  })

  test('of many small packets costs time in proportion to its length', () => {
    const packet = Buffer.from(' \r\n'.repeat(450))
    const start = threadTime()
    edit('', {}, [Buffer.from('A: b\r\n'), ...Array.from({ length: 1500 }, () => packet)])
    edit('', {}, [Buffer.from('A: '), ...Array.from({ length: 1500 }, () => Buffer.alloc(1400, 0x78))])
    expect(threadTime() - start).toBeLessThan(10_000)
  })
})

test.each([
  ['ann', 'ann@us.example'],
  ['<ann>', '<ann@us.example>'],
  ['Ann Example <ann>', 'Ann Example <ann@us.example>'],
  ['"Example, Ann" <ann>, bob@c.example', '"Example, Ann" <ann@us.example>, bob@c.example'],
  ['ann bob', 'ann@us.example, bob@us.example'],
  ['ann (Ann Example)', 'ann@us.example (Ann Example)'],
  ['Ann <ann> Bob <bob>', 'Ann <ann@us.example>Bob <bob@us.example>'],
  ['friends: ann, bob@c.example;', 'friends: ann@us.example, bob@c.example;'],
  ['"a@b"', '"a@b"@us.example'],
  ['ann,\r\n bob@c.example,\r\n\tEve <eve>', 'ann@us.example, bob@c.example, Eve <eve@us.example>'],
  ['ann@c.example', 'ann@c.example'],
  ['undisclosed-recipients:;', 'undisclosed-recipients:;'],
  ['host!ann', 'host!ann'],
  ['ann%host', 'ann%host'],
  ['"open', '"open'],
])('To: %s is completed in local mail', (value, completed) => {
  expect(edit(`To: ${value}\r\n\r\n`).header).toBe(`To: ${completed}\r\n`)
  expect(edit(`To: ${value}\r\n\r\n`, { completion: null }).header).toBe(`To: ${value}\r\n`)
  expect(edit(`Subject: ${value}\r\n\r\n`).header).toBe(`Subject: ${value}\r\n`)
})

test('completed addresses are folded before 70 columns, and append_dot_mydomain completes hosts', () => {
  const many = Array.from({ length: 5 }, (_, i) => `recipient-${i}@host`).join(', ')
  expect(edit(`Cc: ${many}\r\n\r\n`, { completion: { origin: null, parent: 'us.example' } }).header).toBe(
    [
      'Cc: recipient-0@host.us.example, recipient-1@host.us.example,',
      '\trecipient-2@host.us.example, recipient-3@host.us.example,',
      '\trecipient-4@host.us.example\r\n',
    ].join('\r\n'),
  )
})
