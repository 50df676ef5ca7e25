/** Chromium for tests of the page, driven by playwright-core. The tests are skipped, with the reason, on a machine without it. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
import type { PageDaemon } from './page-daemon.ts'
import { reasonToSkip } from './required.ts'

const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'microsoft-edge']

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Path of the browser: DEFERD_TEST_BROWSER, or one of NAMES on the search path. Undefined for none. */
function browserPath(): string | undefined {
  const given = process.env['DEFERD_TEST_BROWSER']
  if (given !== undefined && given !== '') return given
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable)
}

const path = browserPath()

/** Reason to skip the tests with a browser; null when they run. */
export const noBrowser = reasonToSkip(
  'browser',
  path === undefined ? 'no Chromium was found: apt-get install chromium-headless-shell, or set DEFERD_TEST_BROWSER' : null,
)

export const launchBrowser = (): Promise<Browser> => chromium.launch(path === undefined ? {} : { executablePath: path })

/** A new tab that has logged in and shows the first screen. Without scripts, the code is entered in the form. */
export async function loggedIn(context: BrowserContext, daemon: PageDaemon, hasScripts = true): Promise<Page> {
  const page = await context.newPage()
  const code = await daemon.code()
  if (hasScripts) await page.goto(`${daemon.url}login#${code}`)
  else {
    await page.goto(`${daemon.url}login`)
    await page.fill('input[name=code]', code)
    await page.getByRole('button', { name: 'Log in' }).click()
  }
  await page.waitForURL(daemon.url)
  return page
}
