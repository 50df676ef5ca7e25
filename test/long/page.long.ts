/** The page with large queues: an incident with 40,000 deferred messages in a browser, and deletions of 100,000 that are cut. */
import { describe, expect, test } from 'vitest'
import { launchBrowser, loggedIn, noBrowser } from '../support/browser.ts'
import { printFigures } from '../support/figures.ts'
import { cutDeletions } from '../support/page-deletion.ts'
import { Incident } from '../support/page-incident.ts'

const INCIDENT = 40_000
const DELETION = 100_000

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'an incident' : `an incident (skipped: ${noBrowser})`, () => {
  for (const javaScriptEnabled of [true, false])
    test(`with ${INCIDENT} messages is ended in under 25 clicks ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      const browser = await launchBrowser()
      const incident = await Incident.begin(INCIDENT)
      try {
        const clicks = await incident.play(
          await loggedIn(await browser.newContext({ javaScriptEnabled }), incident.daemon, javaScriptEnabled),
        )
        printFigures(`an incident at the page ${javaScriptEnabled ? 'with' : 'without'} scripts`, { messages: INCIDENT, clicks })
        expect(clicks).toBeLessThan(25)
      } finally {
        await browser.close()
        await incident.close()
      }
    })
})

test(`deletions of ${DELETION} messages that are cancelled or killed are undone exactly`, async () => {
  const progress = await cutDeletions(DELETION)
  printFigures('deletions at the page, cut at 30 %', { messages: DELETION, 'values of the progress until then': progress.length })
  expect(progress.length).toBeGreaterThan(10)
})
