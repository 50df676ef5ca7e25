import { describe, expect, test } from 'vitest'
import { escapeControls, maskControls } from '../../src/mail/smtp-reply.ts'

const MISLEADING = [
  0x0a, 0x1b, 0x7f, 0x9b, 0xad, 0x61c, 0x180e, 0x200b, 0x200f, 0x2028, 0x202e, 0x2060, 0x2066, 0x3164, 0xfeff, 0xe0041, 0xe007f,
]

describe('characters that control the display or are not displayed', () => {
  test.each(MISLEADING)('U+%i is masked as one character, and escaped in JSON', (code) => {
    const character = String.fromCodePoint(code)
    expect(maskControls(`a${character}b`)).toBe('a?b')
    const json = escapeControls(JSON.stringify(character))
    expect(json).toMatch(/^"(\\[\w]+)+"$/)
    expect(JSON.parse(json)).toBe(character)
  })

  test('letters, marks and emoji stay', () => {
    const text = 'Grüße, дом, 中文, नमस्ते, 👍🏽'
    expect([maskControls(text), escapeControls(text)]).toEqual([text, text])
  })
})
