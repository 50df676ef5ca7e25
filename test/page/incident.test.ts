/** An incident is ended at the page in a real browser, with scripts and without; test/long/page.long.ts has it with 40,000 messages. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser, loggedIn, noBrowser } from '../support/browser.ts'
import { Incident } from '../support/page-incident.ts'

const MESSAGES = 400
/** Fields that a larger incident has besides: the numbers of messages that are deleted and held. */
const TYPED = 2

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'an incident' : `an incident (skipped: ${noBrowser})`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  for (const javaScriptEnabled of [true, false])
    test(`is ended in under 25 clicks ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      const incident = await Incident.begin(MESSAGES)
      const context = await browser.newContext({ javaScriptEnabled })
      try {
        expect(TYPED + (await incident.play(await loggedIn(context, incident.daemon, javaScriptEnabled)))).toBeLessThan(25)
      } finally {
        await context.close()
        await incident.close()
      }
    })
})
