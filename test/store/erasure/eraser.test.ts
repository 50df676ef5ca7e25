/** Texts and values that an erasure replaces. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mapAddresses } from '../../../src/mail/address-text.ts'
import { pseudonymOf } from '../../../src/mail/pseudonym.ts'
import { Eraser } from '../../../src/store/erasure/eraser.ts'
import { threadTime } from '../../support/thread-time.ts'

const KEY = 'key'
const ANNA = pseudonymOf(KEY, 'anna@far.example')
const eraserOf = (pattern: string, side: 'recipient' | 'sender' = 'recipient') => new Eraser({ side, pattern, before: 1 }, KEY)

describe('a text', () => {
  test.each([
    ['550 5.1.1 <anna@far.example>: unknown', `550 5.1.1 <${ANNA}>: unknown`],
    ['to=<Anna@FAR.example>, orig_to=<anna@far.example.>', `to=<${ANNA}>, orig_to=<${ANNA}.>`],
    ['rfc822;anna@far.example', `rfc822;${ANNA}`],
    ['--recipient=anna@far.example', `--recipient=${ANNA}`],
    [`'anna@far.example'`, `'${ANNA}'`],
    ['hanna@far.example anna@far.example.org', 'hanna@far.example anna@far.example.org'],
    ['"anna"@far.example', ANNA],
    ['no address here @ all', 'no address here @ all'],
  ])('%s', (text, expected) => {
    expect(eraserOf('anna@far.example').text(text)).toBe(expected)
  })

  test('an address with a plus is found in xtext, and a return path is one of the address in it', () => {
    const tagged = eraserOf('anna+tag@far.example')
    expect(tagged.text('ORCPT=rfc822;anna+2Btag@far.example')).not.toContain('anna')
    expect(eraserOf('anna@far.example', 'sender').text('<news+anna=far.example@lists.example>')).not.toContain('anna')
  })

  test('a pattern of a domain leaves other domains', () => {
    const eraser = eraserOf('*@far.example')
    expect(eraser.text('<bob@far.example> <bob@near.example>')).toBe(`<${pseudonymOf(KEY, 'bob@far.example')}> <bob@near.example>`)
  })

  test('an erased text is not erased again, whatever the pattern', () => {
    const once = eraserOf('*').value({ recipient: 'anna@far.example' })
    expect(once).toEqual({ recipient: ANNA })
    expect(eraserOf('*').value(once)).toEqual(once)
  })

  test('no text has the address afterwards, and one without an address is unchanged', () => {
    const parts = fc.constantFrom(
      'anna@far.example',
      'ANNA@far.example',
      '<',
      '>',
      ' ',
      '"',
      '@',
      'x',
      '.',
      ',',
      ';',
      ':',
      '(',
      '=',
      '+',
      '\\',
      '\n',
      'é',
    )
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 20 }), (some) => {
        const text = some.join('')
        const erased = eraserOf('*').text(text)
        if (!text.includes('@')) expect(erased).toBe(text)
        expect(mapAddresses(text, (found) => found)).toBe(text)
        expect(/(?:^|[\s<>,;:(])anna@far\.example(?:[\s<>,;:(]|$)/i.test(erased)).toBe(false)
      }),
      { numRuns: 200 },
    )
  })

  test('of many signs @ takes time in proportion to its length', () => {
    const text = 'a@ '.repeat(400_000)
    const start = threadTime()
    expect(mapAddresses(text, () => '')).toBe(text)
    expect(threadTime() - start).toBeLessThan(10_000)
  })
})

describe('a side of the envelope', () => {
  test('members of the other side keep their address, and other texts do not', () => {
    const data = { sender: 'anna@far.example', recipient: 'anna@far.example', reply: '550 <anna@far.example>' }
    expect(eraserOf('anna@far.example').value(data)).toEqual({ sender: 'anna@far.example', recipient: ANNA, reply: `550 <${ANNA}>` })
    expect(eraserOf('anna@far.example', 'sender').value(data)).toMatchObject({ sender: ANNA, recipient: 'anna@far.example' })
  })

  test('the command of the other side keeps its address in a dialogue', () => {
    const text = [
      '      1 C MAIL FROM:<anna@far.example>',
      '      2 C RCPT TO:<anna@far.example>',
      '      3 S 250 <anna@far.example> ok',
    ].join('\n')
    expect(eraserOf('anna@far.example').dialogue(text).match(/anna/g)).toHaveLength(1)
    expect(eraserOf('anna@far.example', 'sender').dialogue(text)).toContain('RCPT TO:<anna@far.example>')
  })
})

test('equal addresses of a queue have one text, and another key another one', () => {
  expect(ANNA).toMatch(/^erased-[0-9a-f]{8}$/)
  expect(pseudonymOf(KEY, '"anna"@FAR.example')).toBe(ANNA)
  expect(pseudonymOf('other', 'anna@far.example')).not.toBe(ANNA)
})
