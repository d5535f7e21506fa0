// Changes the page after it has loaded, and draws on a canvas: both are seen only by an archive that renders.
setTimeout(() => {
  document.querySelector("#glass").innerHTML = "<b>1008 hectopascals, falling.</b> Stay in. If you went out, read <a href=\"/letters.html#storm\">the letter about that</a>.";
  document.body.dataset.weather = "ready";
}, 300);
const pen = document.querySelector("#trace").getContext("2d");
pen.strokeStyle = "#e0a526";
pen.lineWidth = 3;
pen.beginPath();
for (let x = 0; x <= 420; x += 4) pen.lineTo(x, 40 + x * 0.12 + 14 * Math.sin(x / 37));
pen.stroke();
