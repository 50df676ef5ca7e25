/** The login: a form with one field for the code that `deferd page` prints. */
import { html, type Html } from '../../presentation/html.ts'
import type { LoginFacts } from '../../admin/account-routes.ts'
import { hidden } from '../markup/fields.ts'
import { shapeOf } from '../markup/marks.ts'

interface ShownLogin extends LoginFacts {
  readonly relay: string
  /** Folder of the static files, relative to the login. */
  readonly files: string
}

/** A document without the frame, because a visitor sees nothing of the queue before the login. */
export const loginScreen = ({ relay, files, problem, hasEnded, back }: ShownLogin): string => {
  const page: Html = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>Log in · deferd</title>
        <link rel="icon" href="${files}/icon.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="${files}/page.css" />
        <script type="module" src="${files}/login.js"></script>
      </head>
      <body class="login">
        <main id="main">
          <div class="panel">
            <h1>Log in to deferd</h1>
            <p class="faint">${relay}</p>
            ${hasEnded ? html`<p role="status">Your session has ended: log in again.</p>` : null}
            ${back === '' ? null : html`<p class="faint">After the login you are on the screen <code>${back.split(/[?]/, 1)[0]}</code> again.</p>`}
            ${problem === null ? null : html`<p class="problem" role="alert">${shapeOf('warning')} ${problem}</p>`}
            <form method="post" action="login">
              ${back === '' ? null : hidden({ back })}
              <label class="field"
                ><span>Code</span><input name="code" required autocomplete="off" autocapitalize="off" spellcheck="false" autofocus
              /></label>
              <p class="buttons"><button type="submit" class="primary">Log in</button></p>
            </form>
            <p>
              The command <code>deferd page</code>, run on the machine of the relay, prints a link with a code. A code works once, for a
              minute.
            </p>
          </div>
        </main>
      </body>
    </html> `
  return page.markup
}
