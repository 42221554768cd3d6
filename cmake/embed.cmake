# cmake -DFILES="a.js;b.css" -DOUT=assets.cc -P embed.cmake: the files as arrays of a source (src/base/asset.h).
# -DHEADER=room/file.h -DFUNCTION=name: a source for another header than that, whose function gives other files.
if(NOT HEADER)
  set(HEADER console/asset.h)
  set(FUNCTION assets)
endif()
set(arrays "")
set(table "")
set(number 0)
foreach(path ${FILES})
  get_filename_component(name ${path} NAME)
  file(READ ${path} hex HEX)
  file(SHA256 ${path} hash)
  string(SUBSTRING ${hash} 0 16 tag)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],))"
    "\\1\n" bytes "${bytes}")
  string(APPEND arrays "const unsigned char kBytes${number}[] = {${bytes}0};\n")
  string(APPEND table "    {\"${name}\", \"\\\"${tag}\\\"\",\n"
    "     {reinterpret_cast<const char*>(kBytes${number}), sizeof kBytes${number} - 1}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "#include \"${HEADER}\"\n\nnamespace pscloud {\nnamespace {\n${arrays}}  // namespace\n\n"
  "std::span<const Asset> ${FUNCTION}() {\n  static const Asset kAssets[] = {\n${table}  };\n  return kAssets;\n}\n\n"
  "}  // namespace pscloud\n")
