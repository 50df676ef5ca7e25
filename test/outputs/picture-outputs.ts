/** Pictures of the screens at three widths, in Chromium without scripts and without requests. They are equal in all runs on one machine. */
import { FILES_FOLDER } from '../../src/page/static-files.ts'
import { launchBrowser } from '../support/browser.ts'
import { PageScreens } from '../support/page-screens.ts'
import type { Filled } from './filled-world.ts'
import { SCREENS, withIds } from './page-outputs.ts'

const WIDTHS = [360, 768, 1280] as const

export async function pictureOutputs({ world, ids }: Filled, collect: (name: string, png: Uint8Array) => void): Promise<void> {
  const screens = new PageScreens(world)
  const style = `<style>${await screens.text(`${FILES_FOLDER}/page.css`)}</style>`
  const browser = await launchBrowser()
  try {
    for (const width of WIDTHS) {
      const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width, height: 900 }, offline: true })
      const page = await context.newPage()
      for (const path of SCREENS) {
        const markup = await screens.text(withIds(path, ids)).catch(() => null)
        if (markup === null) continue
        await page.setContent(markup.replaceAll(/<link [^>]*>/g, '').replace('</head>', `${style}</head>`))
        collect(`pictures/${width}/${path}`, await page.screenshot({ fullPage: true, animations: 'disabled' }))
      }
      await context.close()
    }
  } finally {
    await browser.close()
  }
}
