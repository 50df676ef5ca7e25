/** Pictures of the screens at three widths, in Chromium without scripts. They are equal in all runs on one machine. */
import { launchBrowser } from '../support/browser.ts'
import { PageScreens } from '../support/page-screens.ts'
import type { Filled } from './filled-world.ts'
import { SCREENS, withIds } from './page-outputs.ts'

const WIDTHS = [360, 768, 1280] as const
const ORIGIN = 'http://page.example/'

export async function pictureOutputs({ world, ids }: Filled, collect: (name: string, png: Uint8Array) => void): Promise<void> {
  const screens = new PageScreens(world)
  const browser = await launchBrowser()
  try {
    for (const width of WIDTHS) {
      const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width, height: 900 } })
      const page = await context.newPage()
      await page.route('**/*', async (route) => {
        const url = new URL(route.request().url())
        const contentType = { css: 'text/css', svg: 'image/svg+xml' }[url.pathname.split('.').at(-1) ?? ''] ?? 'text/html; charset=utf-8'
        await screens.text(url.href).then(
          (body) => route.fulfill({ contentType, body }),
          () => route.abort(),
        )
      })
      for (const path of SCREENS) {
        const loaded = await page.goto(`${ORIGIN}${withIds(path, ids)}`).then(
          () => true,
          () => false,
        )
        if (loaded) collect(`pictures/${width}/${path}`, await page.screenshot({ fullPage: true, animations: 'disabled' }))
      }
      await context.close()
    }
  } finally {
    await browser.close()
  }
}
