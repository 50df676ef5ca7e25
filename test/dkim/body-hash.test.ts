/** The canonical body hash, against a direct transcription of RFC 6376 §3.4, for any division of the content into pieces. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BodyHash, type Canonicalization } from '../../src/dkim/body-hash.ts'

/** A body of whole lines in its canonical form. */
function canonical(body: string, form: Canonicalization): string {
  const lines = body.split('\r\n')
  const reduced = form === 'simple' ? lines : lines.map((line) => line.replaceAll(/[ \t]+/g, ' ').replace(/ $/, ''))
  while (reduced.at(-1) === '') reduced.pop()
  if (reduced.length === 0) return form === 'simple' ? '\r\n' : ''
  return reduced.map((line) => `${line}\r\n`).join('')
}

const hashOf = (text: string): string => createHash('sha256').update(Buffer.from(text, 'latin1')).digest('base64')

const line = fc.array(fc.constantFrom('a', 'b', ' ', '  ', '\t', '\u00e9', '.', 'word'), { maxLength: 6 }).map((parts) => parts.join(''))
const bodies = fc.array(line, { maxLength: 8 }).map((lines) => lines.map((text) => `${text}\r\n`).join(''))

test.each(['relaxed', 'simple'] as const)('%s', (form) => {
  fc.assert(
    fc.property(bodies, fc.array(fc.nat(60), { maxLength: 6 }), (body, cuts) => {
      const bytes = Buffer.from(body, 'latin1')
      const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b), bytes.length]
      const hash = new BodyHash(form)
      places.slice(1).forEach((end, i) => hash.write(bytes.subarray(places[i], end)))
      expect(hash.digest()).toBe(hashOf(canonical(body, form)))
    }),
    { numRuns: 500 },
  )
})

test('the hash of an empty body is that of RFC 6376 §3.4', () => {
  expect(new BodyHash('relaxed').digest()).toBe('47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=')
  expect(new BodyHash('simple').digest()).toBe('frcCV1k9oG9oKj3dpUqdJg1PxRT2RSN/XKdLCPjaYaY=')
})

test('a body whose last line has no end is hashed with one', () => {
  const hash = new BodyHash()
  hash.write(Buffer.from('a'))
  expect(hash.digest()).toBe(hashOf('a\r\n'))
})
