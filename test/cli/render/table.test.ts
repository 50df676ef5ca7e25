import { describe, expect, test } from 'vitest'
import { addressPair, columnsFor, cutMiddle, StoryTable, tableRow } from '../../../src/cli/render/table.ts'
import { withoutColours } from '../../support/operator.ts'

const PLAIN = { width: 80, coloured: false }

test('the middle of a long text is cut', () => {
  expect(cutMiddle('ann@example.com', 15)).toBe('ann@example.com')
  expect(cutMiddle('a.very.long.name@example.com', 15)).toBe('a.very.…ple.com')
  expect(cutMiddle('abc', 1)).toBe('…')
})

describe('sender and recipient', () => {
  test('are whole when they fit', () => {
    expect(addressPair('a@b.example', 'c@d.example', 0, 40)).toBe('a@b.example → c@d.example')
    expect(addressPair('a@b.example', 'c@d.example', 2, 40)).toBe('a@b.example → c@d.example +2')
  })

  test('share the room, of which the recipient has the larger part', () => {
    const pair = addressPair('bounces+id-1234567890@mail.shop.example', 'someone.with.a.name@subdomain.isp.example', 3, 38)
    expect(pair.length).toBeLessThanOrEqual(38)
    const [sender = '', recipient = ''] = pair.split(' → ')
    expect(recipient.length).toBeGreaterThan(sender.length)
    expect(pair).toMatch(/^boun.*…\S* → some\S*…\S*example \+3$/)
  })

  test('a short recipient leaves its room to the sender', () => {
    expect(addressPair('bounces+id-1234567890@mail.shop.example', 'c@d.example', 0, 38)).toMatch(/^bounces\S*…\S*\.example → c@d\.example$/)
  })
})

test('colours surround the text of a cell and add no width', () => {
  const columns = [
    { heading: 'A', width: 5 },
    { heading: 'B', width: 4, align: 'right' },
  ] as const
  const cells = [['abc', 'bad'], '1'] as const
  expect(tableRow(cells, columns, PLAIN)).toBe('abc      1')
  const coloured = tableRow(cells, columns, { coloured: true })
  expect(coloured).not.toBe('abc      1')
  expect(withoutColours(coloured)).toBe('abc      1')
})

test('a reason is beside the addresses on a wide line, and below them on a narrow one', () => {
  const parties = { sender: 'a@b.example', recipient: 'c@d.example', others: 0 }
  const row = (width: number) =>
    new StoryTable([{ heading: 'ID', width: 4 }], 'REASON', { width, coloured: false }).row(['1'], parties, '421 4.7.0 x')
  expect(row(80)).toBe('1    a@b.example → c@d.example\n  421 4.7.0 x')
  expect(row(120)).toMatch(/^1 {4}a@b\.example → c@d\.example +421 4\.7\.0 x$/)
})

test('columns are as wide as their content, and names are cut when the line is full', () => {
  const [name, figure] = columnsFor(['NAME', 'N'], [['x'.repeat(50), '1,000']], { width: 30 })
  expect(name).toMatchObject({ width: 24, cut: 'middle' })
  expect(figure).toMatchObject({ width: 5, align: 'right' })
})
