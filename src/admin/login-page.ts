/** The form of the login, and its script. Both work without each other: the code can be typed, or comes from the fragment of the link. */

/** The page of the login. `problem` is the sentence on a failed login; null at the first visit. */
export type LoginPage = (facts: { readonly problem: string | null }) => string

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

export const loginPage: LoginPage = ({ problem }) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>deferd: log in</title>
<script src="login.js" defer></script>
<h1>deferd</h1>
${problem === null ? '' : `<p role="alert">${escaped(problem)}</p>\n`}<form method="post" action="login">
<p><label>Code of <code>deferd page</code> <input name="code" required autofocus autocomplete="off" spellcheck="false"></label></p>
<p><button>Log in</button></p>
</form>
</html>
`

/** Takes the code from the fragment of the URL, removes it from the address line and the history, and sends the form. */
export const LOGIN_SCRIPT = `const code = location.hash.slice(1)
if (code !== '') {
  history.replaceState(null, '', location.pathname)
  const form = document.querySelector('form')
  form.elements.code.value = code
  form.requestSubmit()
}
`
