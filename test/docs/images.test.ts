/** Pictures of the repository: XML parsers read them, and a browser draws them. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { SaxesParser } from 'saxes'
import { describe, expect, test } from 'vitest'
import { launchBrowser, noBrowser } from '../support/browser.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const pictures = execFileSync('git', ['ls-files', '*.svg'], { cwd: root, encoding: 'utf8' }).trim().split('\n')
const read = (path: string): string => readFileSync(`${root}/${path}`, 'utf8')

/** Mistakes of a text that claims to be XML. */
function mistakesIn(text: string): readonly string[] {
  const mistakes: string[] = []
  const parser = new SaxesParser({ xmlns: true })
  parser.on('error', (error) => mistakes.push(error.message))
  parser.write(text).close()
  return mistakes
}

test('there are pictures, and a control character is a mistake', () => {
  expect(pictures).toContain('docs/images/queue-show.svg')
  expect(mistakesIn('<svg xmlns="http://www.w3.org/2000/svg"><text>\u001b[33mx</text></svg>')).not.toEqual([])
})

/** Pixels; null for a picture as wide as the place where it stands. */
const widthOf = (picture: string): number | null => Number(/<svg [^>]*?width="(\d+)"/.exec(picture)?.[1] ?? 0) || null

test.each(pictures)('%s is well-formed', (path) => expect(mistakesIn(read(path))).toEqual([]))

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'in Chromium' : `in a browser (skipped: ${noBrowser})`, () => {
  test('every picture is drawn, in its own size', async () => {
    const browser = await launchBrowser()
    try {
      const page = await browser.newPage()
      for (const path of pictures) {
        const address = `data:image/svg+xml;base64,${Buffer.from(read(path)).toString('base64')}`
        await page.setContent(`<img src="${address}">`)
        // A picture that cannot be drawn rejects.
        await page.locator('img').evaluate((image) => (image as unknown as { decode(): Promise<void> }).decode())
        const drawn = await page.locator('img').evaluate((image) => image.clientWidth)
        expect([path, drawn]).toEqual([path, widthOf(read(path)) ?? drawn])
      }
    } finally {
      await browser.close()
    }
  })
})
