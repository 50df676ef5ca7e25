/** Layouts of single screens in Chromium, from their markup and without scripts. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { document } from '../../src/page/markup/frame.ts'
import { html } from '../../src/presentation/html.ts'
import { nodesScreen } from '../../src/page/screens/system/nodes-screen.ts'
import { FILES_FOLDER } from '../../src/page/static-files.ts'
import { HOUR, MINUTE } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { launchBrowser, noBrowser } from '../support/browser.ts'
import { node, NODE_VIEW } from '../support/listed-nodes.ts'
import { layoutFaults } from '../support/layout-faults.ts'
import { PageScreens } from '../support/page-screens.ts'

const PROVIDER = 'mailboxes-of-many-consumer-domains'
/** Longer than a day, so that times have their date. */
const YESTERDAY = 26 * HOUR

const TABLES = {
  provider: { [PROVIDER]: { mx: ['.provider.example'] } },
  schedule: {
    nightly: { at: '30 2 * * *', do: 'flush', destinations: '*.example' },
    weekly: { at: '30 2 * * 0', do: 'flush', destinations: '*.example' },
  },
}

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'in Chromium' : `in a browser (skipped: ${noBrowser})`, () => {
  let world: ApiWorld
  let browser: Browser
  beforeAll(async () => {
    world = await ApiWorld.open('memory', configFrom(TABLES, 'relay.example'), TABLES, { providerOf: () => PROVIDER })
    await world.fill(12)
    await world.queue.advance(MINUTE)
    await world.api.post(`/providers/${PROVIDER}/suspend`, {}, { as: 'admin' })
    await world.api.post('/schedules/nightly/run', {}, { as: 'admin' })
    await world.queue.advance(MINUTE)
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await world.close()
  })

  async function shown(path: string, width: number): Promise<Page> {
    return styled(await new PageScreens(world).text(path), width)
  }

  async function styled(markup: string, width: number): Promise<Page> {
    const page = await browser.newPage({ viewport: { width, height: 900 }, javaScriptEnabled: false })
    const style = `<style>${await new PageScreens(world).text(`${FILES_FOLDER}/page.css`)}</style>`
    await page.setContent(markup.replaceAll(/<link [^>]*>/g, '').replace('</head>', `${style}</head>`))
    return page
  }

  test.each([768, 1440])('at %i pixels, the operations are behind the last row until a message is chosen, then in view', async (width) => {
    const page = await shown('messages', width)
    const bottomOf = async (selector: string): Promise<number> => {
      const box = await page.locator(selector).last().boundingBox()
      return (box?.y ?? 0) + (box?.height ?? 0)
    }
    const bar = page.locator('.actions[role=group]')
    const top = async (): Promise<number> => (await bar.boundingBox())?.y ?? 0
    expect(await bottomOf('tbody tr')).toBeGreaterThan(900)
    expect(await top()).toBeGreaterThanOrEqual((await bottomOf('tbody tr')) - 2)
    const inView = () => bottomOf('.actions[role=group]').then(Math.round)
    await page.locator('input[name=id]').first().check()
    expect(await inView()).toBe(900)
    await page.locator('input[name=id]').first().uncheck()
    expect(await top()).toBeGreaterThan(900)
    await page.close()
  })

  test('at 768 pixels, the result of a run has its name, since it stands below that of the run', async () => {
    const page = await shown('', 768)
    expect(await layoutFaults(page)).toEqual([])
    const names = `[...document.querySelectorAll('.schedules td.reply')].map((cell) => {
      const { content, flexShrink } = getComputedStyle(cell, '::before')
      return cell.checkVisibility() ? [content.replaceAll('"', '') + cell.textContent.trim(), flexShrink] : null
    })`
    expect(await page.evaluate<unknown>(names)).toEqual([['Result:flush', '0'], null])
    await page.close()
  })

  test('the settings and the action of a node are in view at all widths', async () => {
    const differing = ['minimal_backoff_time', 'maximal_queue_lifetime', 'bounce_queue_lifetime']
    const nodes = [
      node('mx1.relays.example', { answers: true }),
      node('mx2.relays.example', { state: 'draining', settings_differ: true, differing_settings: differing }),
      node('mx3.relays.example', {
        state: 'lost',
        shards: 0,
        lost: { time: 0, taken_over_by: 'mx1.relays.example', shards: 84, recipients: 1_204 },
      }),
    ]
    const markup = document(NODE_VIEW, nodesScreen(NODE_VIEW, { nodes, lease: 5 }))
    for (const width of [320, 720, 768, 880, 950, 1024, 1440]) {
      const page = await styled(markup, width)
      expect(await layoutFaults(page), String(width)).toEqual([])
      for (const name of ['Drain…', 'Undrain…', 'Forget…']) {
        const box = await page.getByRole('link', { name, exact: true }).boundingBox()
        expect((box?.x ?? width) + (box?.width ?? 0), `${name} at ${width}`).toBeLessThanOrEqual(width)
      }
      await page.close()
    }
  })

  test('the words of the head are in one line each, whatever its width', async () => {
    const view = { ...NODE_VIEW, relay: 'relay.sender.example', node: 'mx2', health: { state: 'good', text: 'commits in 10 ms' } } as const
    const markup = document(view, { title: 'Deliverability', place: 'deliverability', main: html`<h1>Deliverability</h1>` })
    for (const width of [768, 1026, 1100, 1280, 1366, 1440, 1457, 1920]) {
      const page = await styled(markup, width)
      for (const selector of ['.light', 'header nav', '.brand .node']) {
        const box = await page.locator(selector).first().boundingBox()
        expect(box?.height, `${selector} at ${width}`).toBeLessThan(40)
      }
      await page.close()
    }
  })

  test('on a phone, a button with a long name is no wider than the window', async () => {
    const [destination = ''] = (await world.api.get('/destinations')).json.destinations.map(
      (one: { destination: string }) => one.destination,
    )
    const page = await shown(`destinations/${destination}`, 375)
    expect(await page.getByText(`Resume ${PROVIDER}…`).count()).toBe(1)
    expect(await layoutFaults(page)).toEqual([])
    await page.close()
  })

  test('the causes of mail that waits since yesterday fit, on a phone and from 720 pixels on', async () => {
    await world.queue.advance(YESTERDAY)
    const [one] = (await world.api.get('/destinations')).json.destinations
    for (const width of [320, 719, 720])
      for (const path of [`destinations/${one?.destination ?? ''}`, 'causes', 'trends']) {
        const page = await shown(path, width)
        expect(await layoutFaults(page), `${path} at ${width}`).toEqual([])
        await page.close()
      }
  })
})
