// Fills the log table from a data file: what an archive sees only when it runs the page.
const rows = await (await fetch("/data/log.json")).json();
const body = document.querySelector("#log tbody");
for (const entry of rows) {
  const line = body.insertRow();
  for (const text of [entry.day, entry.boat, entry.entry]) line.insertCell().textContent = text;
}
const boats = new Set(rows.map((entry) => entry.boat));
document.querySelector("#count").textContent = `${rows.length} entries by ${boats.size} boats.`;
const more = document.createElement("p");
more.innerHTML = 'The year in full is in the <a href="/chronicle.html">chronicle</a>; the <a href="/pilot.html">pilot\'s notes</a> are linked only from here.';
document.querySelector("main").append(more);
console.log("log read", rows.length);
