/** Takes the code from the fragment of the link, removes it from the address and the history, and sends the form. */
const code = location.hash.slice(1)
const form = document.querySelector('form')
const input = form?.querySelector('input[name=code]')
if (code !== '' && form !== null && input instanceof HTMLInputElement) {
  history.replaceState(null, '', location.pathname)
  input.value = code
  form.requestSubmit()
}
